// Answers as cards, and what the owner can say about each. Answers are inserted as text, or as the server rendered them.

import { announce, attempt, element, find, send, short } from "./dom.js";

export const cards = new Map(); // by the answer's id: { item, text, body, … }
export const picks = () => [...cards].filter(([, card]) => card.pick); // the answers to choose among
export const actions = {}; // what the page does for a card: others, taught, undo, busy, goOn

const nouns = { pick: "your pick", none: "your “none”", correct: "your correction", praise: "your praise",
  blame: "your rating", wrong_from: "your mark", good_talk: "your praise", bad_talk: "your rating", went_on: "going on",
  left: "leaving it", words: "your text" };

// How strong a lesson was, in words; the figures are one hover away.
export function told(lesson, kind) {
  if (lesson.why) return `Saved, not learned by day: ${lesson.why}`;
  if (lesson.learned === false && lesson.kl === null) return "Saved; being learned …";
  const seconds = lesson.seconds === null ? "learned" : `learned in ${lesson.seconds.toFixed(1)} s`;
  const size = lesson.change_nats < 1 ? "small" : lesson.change_nats < 4 ? "clear" : "large";
  return `${seconds} · ${nouns[kind]}: a ${size} change in how likely it is`;
}

export const figures = (lesson) => (lesson.kl === null ? ""
  : `${lesson.change_nats >= 0 ? "+" : ""}${lesson.change_nats.toFixed(1)} nats; KL ${lesson.kl.toFixed(3)} nats a token`);

export async function teach(kind, answer, more = {}) {
  const card = cards.get(answer);
  const before = [...cards.values()].map(({ item }) => [item, item.className]);
  if (["pick", "none"].includes(kind)) for (const [, other] of picks()) other.item.classList.remove("picked");
  if (card && ["pick", "praise", "correct", "blame"].includes(kind)) { // at once: learning takes a second
    card.item.classList.toggle("picked", kind !== "blame");
    card.item.classList.toggle("blamed", kind === "blame");
  }
  const response = await send("api/lesson", { kind, answer, ...more }).catch((error) => {
    for (const [item, marks] of before) item.className = marks;
    throw error;
  });
  const result = await response.json();
  for (const [id, authors] of Object.entries(result.authors ?? {})) reveal(cards.get(id), authors);
  if (card) card.lesson = result.lesson;
  if (card && kind === "correct") {
    card.earlier.push({ lesson: result.lesson, text: card.text, html: card.html, finished: !card.cut });
    fill(card, { text: more.text, html: "" });
  }
  announce(told(result, kind));
  await actions.taught(kind, answer, result);
  return result;
}

// Take back what a lesson that was undone has changed on the cards.
export function forget(lesson) {
  for (const card of cards.values()) {
    if (card.lesson === lesson) card.item.classList.remove("picked", "blamed");
    const at = card.earlier.findIndex((one) => one.lesson === lesson);
    if (at < 0) continue;
    const [before] = card.earlier.splice(at, 1);
    if (at === card.earlier.length) fill(card, before);
  }
}

// Who wrote an answer, which the owner may know after the pick.
function reveal(card, authors) {
  const champion = authors.filter((author) => author === "champion").length;
  const who = champion === 0 ? "the day copy" : champion === authors.length ? "the champion" : "both";
  if (card) card.count.textContent = `by ${who}${card.cut ? ", cut off" : ""}`;
}

export function add(list, id, { pick }) {
  const body = element("div", { className: "text" });
  const count = element("span");
  const label = element("span", { className: "number" }, "Model");
  const tool = (name, title, key, action) => {
    const button = element("button", { type: "button", title, onclick: attempt(() => action(id)) }, name);
    button.setAttribute("aria-label", title);
    if (key) button.setAttribute("aria-keyshortcuts", key);
    return button;
  };
  const best = tool("Pick", "This is the best answer", "", (answer) => teach("pick", answer));
  best.className = "main";
  const more = tool("Go on", "Write the rest of this answer", "", (answer) => actions.goOn(answer));
  more.hidden = true;
  const tools = element("div", { className: "tools" }, ...(pick ? [best] : []),
    tool("+", "Good: answer like this", "+", (answer) => teach("praise", answer)),
    tool("−", "Bad: do not answer like this", "-", (answer) => teach("blame", answer)),
    tool("Correct", "Type a better answer", "e", edit),
    tool("Wrong from …", "Choose the word from which it goes wrong", "x", chooseWord),
    ...(pick ? [] : [more, tool("Five others", "Five other answers to this", "r", (answer) => actions.others(answer))]),
    tool("Why?", "Why does it say that?", "w", why),
    ...(navigator.clipboard // not on a shared page, which is no secure context
      ? [tool("Copy", "Copy the answer", "", (answer) => navigator.clipboard.writeText(cards.get(answer).text))] : []));
  const item = element("li", { className: "answer" },
    element("div", { className: "top" }, label, count), body, tools);
  const card = { id, item, body, count, label, best, more, tools, pick, text: "", earlier: [] };
  cards.set(id, card);
  list.append(item);
  number();
  return card;
}

// Show a whole answer, as the server rendered it: Markdown without links, images and HTML.
export function fill(card, { text, html, finished = true }) {
  card.text = text;
  card.html = html;
  if (html) card.body.innerHTML = html;
  else card.body.textContent = text || "(no answer)"; // what the owner typed has no HTML
  card.body.classList.toggle("rendered", Boolean(html));
  card.cut = !finished;
  card.more.hidden = finished;
  card.count.textContent = finished ? card.count.textContent.replace("cut off", "") : "cut off";
}

export function number() {
  picks().forEach(([, card], at) => {
    card.label.textContent = `Answer ${at + 1}`;
    card.item.setAttribute("aria-label", `Answer ${at + 1}`);
    card.best.replaceChildren("Pick ", element("kbd", {}, String(at + 1)));
    card.best.setAttribute("aria-label", `Pick answer ${at + 1}`);
    card.best.setAttribute("aria-keyshortcuts", String(at + 1));
  });
}

// Submit a form, which cannot be submitted again meanwhile.
export async function once(form, submit) {
  const button = form.querySelector("button:not([type=button])");
  if (button.disabled) return;
  button.disabled = true;
  try {
    await submit();
  } finally {
    button.disabled = false;
  }
}

export function edit(id) {
  const card = cards.get(id);
  const text = element("textarea", { rows: 6, value: card.text });
  text.setAttribute("aria-label", "A better answer");
  const close = () => { form.remove(); card.body.hidden = card.tools.hidden = false; };
  const save = attempt(async () => {
    const better = text.value.trim();
    await once(form, () => teach("correct", id, { text: better }));
    close();
  });
  const form = element("form", { onsubmit: (event) => { event.preventDefault(); save(); } }, text,
    element("div", { className: "tools" }, element("button", { className: "main" }, "Teach this"),
      element("button", { type: "button", onclick: close }, "Cancel")));
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } });
  card.body.hidden = card.tools.hidden = true;
  card.item.append(form);
  text.focus();
}

export function chooseWord(id) {
  const card = cards.get(id);
  const plain = () => { fill(card, { text: card.text, html: card.html, finished: !card.cut }); find("hint").textContent = ""; };
  card.body.replaceChildren();
  card.body.classList.remove("rendered");
  for (const { 0: piece, index } of card.text.matchAll(/\s+|\S+/g)) {
    if (!piece.trim()) { card.body.append(piece); continue; }
    const from = [...card.text.slice(0, index)].length; // the server counts code points
    const word = element("button", { type: "button", className: "word", onclick: attempt(async () => {
      plain();
      await teach("wrong_from", id, { from_char: from });
    }) }, piece);
    card.body.append(word);
  }
  card.body.onkeydown = (event) => { if (event.key === "Escape") { event.stopPropagation(); plain(); } };
  find("hint").textContent = "Choose the word from which the answer goes wrong (Esc: never mind).";
  card.body.querySelector(".word")?.focus();
}

// How likely the answer was under each champion so far and after each lesson, and what moved it most.
export async function why(id) {
  const card = cards.get(id);
  card.why?.remove();
  const { steps } = await (await send("api/blame", { answer: id })).json();
  const [low, high] = [Math.min, Math.max].map((of) => of(...steps.map(({ logprob }) => logprob)));
  const points = steps.map(({ logprob }, at) =>
    `${(100 * at) / Math.max(1, steps.length - 1)},${28 - (26 * (logprob - low)) / Math.max(high - low, 1e-6)}`);
  const line = element("div", { className: "line" });
  line.innerHTML = `<svg viewBox="-2 0 104 30" role="img" preserveAspectRatio="none"><polyline points="${points.join(" ")}"/></svg>`;
  line.firstChild.setAttribute("aria-label", `Log-probability at ${steps.length} steps, from ${low.toFixed(1)} to ${high.toFixed(1)} nats`);
  const most = steps.slice(1).reduce((best, step) => (Math.abs(step.moved) > Math.abs(best?.moved ?? 0.1) ? step : best), null);
  const said = most
    ? `${most.moved > 0 ? "Made likelier" : "Made less likely"} most (${times(most.moved)}) by ${most.lesson ? `your lesson “${short(most.what, 60)}”` : most.what === "serves now" ? "the last night" : most.what}.`
    : "Nothing since then has changed how likely it is.";
  const axis = "How likely the answer was, from the oldest champion kept (left) to now (right).";
  card.why = element("div", { className: "why" }, ...(steps.length > 1 ? [line, element("small", {}, axis)] : []), element("p", { title: `${most?.moved.toFixed(1) ?? 0} nats` }, said));
  if (most?.lesson) {
    card.why.append(element("button", { type: "button", onclick: attempt(async () => {
      await actions.undo(most.lesson);
      card.why.remove();
    }) }, "Undo this lesson"));
  }
  card.item.append(card.why);
  announce(said);
}

const times = (nats) => `${Math.exp(Math.min(Math.abs(nats), 20)).toPrecision(2)} times`;
