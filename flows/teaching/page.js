// The classroom's page. Answers are inserted as text, never as markup. The day's state comes from /api/events.

const find = (id) => document.getElementById(id);
const names = { pick: "Picked", none: "None was good", correct: "Corrected", praise: "Praised", blame: "Blamed",
  wrong_from: "Wrong from", good_talk: "Good conversation", bad_talk: "Bad conversation", went_on: "Went on after",
  left: "Left without a word", words: "To read" };
let state = { lessons: [], ready: false, why: "" };
let asked = { text: "", name: "" }; // the question that the cards answer
let cards = new Map(); // by the answer's id: { item, text, body }
let writing = false;
let undoing = false;
let follows = false; // whether the question is a follow-up
let ending = ""; // the id of the answer that was judged last

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function send(path, body = {}, method = "POST") {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: `error ${response.status}` }));
    throw new Error(error);
  }
  return response;
}

const say = (text) => { find("status").textContent = text; };
const announce = (text) => { find("announcer").textContent = text; };
const attempt = (work) => (...args) => Promise.resolve(work(...args)).catch((error) => say(error.message));

// --- asking

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    const whole = buffer.split("\n\n");
    buffer = whole.pop();
    for (const event of whole) {
      const [, name, data] = event.match(/^event: (.*)\ndata: (.*)$/s);
      yield [name, JSON.parse(data)];
    }
  }
}

async function ask(text, { followUp = false, again = "" } = {}) {
  if (writing) await send("api/stop");
  const response = await send("api/ask", { text, follow_up: followUp, again });
  if (find("prompt").value === text) find("prompt").value = "";
  asked = { text, name: again };
  cards = new Map();
  find("welcome").hidden = true;
  find("question").hidden = false;
  find("asked").textContent = text;
  find("answers").replaceChildren();
  find("held-out").hidden = find("talk").hidden = find("earlier").hidden = true;
  busy(true);
  try {
    for await (const [name, data] of events(response)) {
      if (name === "error") throw new Error(data.error);
      if (name === "answer") {
        const card = cards.get(data.answer) ?? add(data.answer);
        card.text += data.delta;
        card.body.textContent = card.text;
      }
      if (name === "done") { asked.name = data.question; busy(false); settle(data); }
    }
  } finally {
    if (writing) busy(false);
  }
}

function busy(now) {
  writing = now;
  find("answers").setAttribute("aria-busy", String(now));
  find("stop").hidden = !now;
  find("hint").textContent = now ? "" : "Which one is best? Press its number, or correct one.";
}

function settle({ answers, held_out: heldOut, earlier }) {
  const shown = new Map(answers.map((answer) => [answer.id, answer]));
  for (const [id, card] of cards) if (!shown.has(id)) { card.item.remove(); cards.delete(id); }
  for (const answer of answers) {
    const card = cards.get(answer.id) ?? add(answer.id);
    card.text = answer.text;
    card.body.textContent = answer.text || "(no answer)";
    card.count.textContent = answer.count > 1 ? `written ${answer.count} times` : "";
  }
  number();
  find("held-out").hidden = !heldOut;
  follows = earlier.length > 0;
  find("earlier").hidden = !follows;
  find("earlier").replaceChildren(...earlier.map(({ role, content }) =>
    element("li", {}, element("strong", {}, role === "user" ? "You" : "Model"), ` ${content}`)));
  announce(`${answers.length} answers. ${answers.map((answer, at) => `${at + 1}: ${answer.text}`).join(" ")}`);
  if (answers.length === 1) find("hint").textContent = "All samples agree: praise, blame or correct it.";
}

function add(id) {
  const body = element("p", { className: "text" });
  const count = element("span");
  const label = element("span", { className: "number" });
  const tool = (name, title, key, action) => {
    const button = element("button", { type: "button", title, onclick: attempt(() => action(id)) }, name);
    button.setAttribute("aria-label", title);
    if (key) button.setAttribute("aria-keyshortcuts", key);
    return button;
  };
  const pick = tool("Pick", "This is the best answer", "", (answer) => teach("pick", answer));
  pick.className = "main";
  const tools = element("div", { className: "tools" }, pick,
    tool("+", "Praise: this is good", "+", (answer) => teach("praise", answer)),
    tool("−", "Blame: this is bad", "-", (answer) => teach("blame", answer)),
    tool("Wrong from …", "Choose the word from which it goes wrong", "x", chooseWord),
    tool("Correct", "Type a better answer", "e", edit));
  const item = element("li", { className: "answer" },
    element("div", { className: "top" }, label, count), body, tools);
  const card = { item, body, count, label, pick, tools, text: "" };
  cards.set(id, card);
  find("answers").append(item);
  number();
  return card;
}

function number() {
  [...cards.values()].forEach((card, at) => {
    card.label.textContent = `Answer ${at + 1}`;
    card.item.setAttribute("aria-label", `Answer ${at + 1}`);
    card.pick.replaceChildren("Pick ", element("kbd", {}, String(at + 1)));
    card.pick.setAttribute("aria-label", `Pick answer ${at + 1}`);
    card.pick.setAttribute("aria-keyshortcuts", String(at + 1));
  });
}

// --- teaching

async function teach(kind, answer, more = {}) {
  say("Saving …");
  const result = await (await send("api/lesson", { kind, answer, ...more })).json();
  const card = cards.get(answer);
  if (card && ["pick", "praise", "correct"].includes(kind)) {
    for (const other of cards.values()) other.item.classList.remove("picked");
    card.item.classList.add("picked");
  }
  if (card && !["none", "good_talk", "bad_talk"].includes(kind)) {
    ending = answer;
    find("talk").hidden = !follows;
  }
  find("hint").textContent = result.learned ? "Learned. Press r for five others, and see what has changed." : result.why;
  announce(told(result, kind));
}

const nouns = { pick: "your pick", none: "your “none”", correct: "your correction", praise: "your praise",
  blame: "your blame", wrong_from: "your mark", good_talk: "your praise", bad_talk: "your blame", went_on: "going on",
  left: "leaving it", words: "your text" };

function told(lesson, kind) {
  if (lesson.why) return `Saved, not learned now: ${lesson.why}`;
  if (lesson.learned === false && lesson.kl === null) return "Saved; being learned …";
  const seconds = lesson.seconds === null ? "learned" : `learned in ${lesson.seconds.toFixed(1)} s`;
  return `${seconds} · ${nouns[kind]} ${lesson.change_nats >= 0 ? "+" : ""}${lesson.change_nats.toFixed(1)} nats`;
}

function edit(id) {
  const card = cards.get(id);
  const text = element("textarea", { rows: 3, value: card.text });
  text.setAttribute("aria-label", "A better answer");
  const close = () => { form.remove(); card.body.hidden = card.tools.hidden = false; };
  const save = attempt(async () => {
    const better = text.value.trim();
    await teach("correct", id, { text: better });
    card.body.textContent = better;
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

function chooseWord(id) {
  const card = cards.get(id);
  const plain = () => { card.body.textContent = card.text; find("hint").textContent = ""; };
  card.body.replaceChildren();
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

async function undo(lesson) {
  undoing = true;
  show(state);
  let result;
  try {
    result = await (await send(`api/lesson/${lesson}`, {}, "DELETE")).json();
  } finally {
    undoing = false;
    show(state);
  }
  announce(`Undone in ${result.seconds.toFixed(1)} s.`);
}

// --- the day's state

function show(now) {
  state = now;
  const { right, of, chance } = now.guessed;
  const last = now.lessons[0];
  const parts = now.ready ? [last ? told(last, last.what.kind) : "Ready: ask something."] : [now.why];
  if (undoing) parts[0] = "Undoing; the lessons after it are learned again …";
  if (of) parts.push(`it would have guessed ${right} of your last ${of} picks, chance ${chance}`);
  if (now.blind.picks) parts.push(`blind test: its answers won ${now.blind.day} of ${now.blind.picks} against the champion's, chance ${now.blind.chance}`);
  if (now.day_kl) parts.push(`${Math.max(1, Math.round(100 * now.day_kl / now.day_kl_limit))} % of what a day may change`);
  say(parts.join(" · "));
  find("live").checked = now.live;
  find("ask-button").disabled = !now.ready;
  find("no-lessons").hidden = now.lessons.length > 0;
  find("follow-label").hidden = !now.lessons.some((lesson) => ["pick", "correct", "praise", "good_talk"].includes(lesson.what.kind));
  find("lessons").replaceChildren(...now.lessons.map(item));
}

function item(lesson) {
  const { kind, question, text } = lesson.what;
  const undoing = element("button", { type: "button", onclick: attempt(() => undo(lesson.id)) }, "Undo");
  undoing.setAttribute("aria-label", `Undo: ${names[kind]} ${text.slice(0, 60)}`);
  return element("li", {}, undoing, element("strong", {}, names[kind]),
    ` ${short(text, 120)}`, ...(question ? [element("br"), `“${short(question, 60)}”`] : []),
    element("div", { className: "effect" }, told(lesson, kind)));
}

const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

// --- keys

const others = () => ask(asked.text, { again: asked.name });
const current = () => [...cards].find(([, { item }]) => item.contains(document.activeElement))?.[0] ?? [...cards.keys()][0];
const keys = {
  0: () => teach("none", current()), e: () => edit(current()), x: () => chooseWord(current()),
  "+": () => teach("praise", current()), "-": () => teach("blame", current()), r: others,
  z: () => state.lessons[0] && undo(state.lessons[0].id), Escape: () => writing && send("api/stop"),
  "/": () => find("prompt").focus(), "?": () => find("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("textarea, input:not([type=checkbox]), dialog");
  if (typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || !find("keys").checked) return;
  const chosen = [...cards.keys()][Number(event.key) - 1];
  const action = chosen ? () => teach("pick", chosen) : keys[event.key];
  if (!action || ("0exr+-".includes(event.key) && !cards.size)) return;
  event.preventDefault();
  attempt(action)();
});

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  find("prompt").blur(); // so that the number keys pick
  const followUp = find("follow").checked;
  attempt(ask)(find("prompt").value, { followUp }).then(() => { find("follow").checked = false; });
});
find("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); find("ask").requestSubmit(); }
  if (event.key === "Escape") find("prompt").blur();
});
find("words").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => { await teach("words", null, { text: find("text").value }); find("text").value = ""; })();
});
find("none").onclick = attempt(() => teach("none", current()));
find("good-talk").onclick = attempt(() => teach("good_talk", ending));
find("bad-talk").onclick = attempt(() => teach("bad_talk", ending));
find("others").onclick = attempt(others);
find("stop").onclick = attempt(() => send("api/stop"));
find("help-open").onclick = () => find("help").showModal();
find("live").onchange = attempt(() => send("api/live", { on: find("live").checked }));
find("keys").checked = localStorage.getItem("keys") !== "off";
find("keys").onchange = () => localStorage.setItem("keys", find("keys").checked ? "on" : "off");

attempt(async () => {
  const token = new URLSearchParams(location.hash.slice(1)).get("t");
  if (token) {
    await send("api/session", { token });
    history.replaceState(null, "", location.pathname); // not into bookmarks
  }
  const response = await fetch("api/state");
  if (!response.ok) throw new Error((await response.json()).error);
  show(await response.json());
  const source = new EventSource("api/events");
  source.addEventListener("state", (event) => show(JSON.parse(event.data)));
  source.onerror = () => say("The classroom does not answer: is `nightschool teach` still running?");
})();
