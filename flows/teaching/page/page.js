// The classroom's page: questions with five answers, or a chat. The day's state comes from /api/events.

import {
  actions, add, cards, chooseWord, edit, figures, fill, forget, number, once, picks, teach, told, why,
} from "./cards.js";
import { accept, chat, late, list, open, refresh } from "./chat.js";
import { compare } from "./compare.js";
import "./model.js";
import { alone, announce, attempt, element, events, find, get, say, send, short, stopped } from "./dom.js";

const names = { pick: "Picked", none: "None was good", correct: "Corrected", praise: "Praised", blame: "Rated bad",
  wrong_from: "Wrong from", good_talk: "Good conversation", bad_talk: "Bad conversation", went_on: "Went on after",
  left: "Left without a word", words: "To read" };
let state = { lessons: [], ready: false, why: "" };
let mode = localStorage.getItem("mode") ?? "five"; // or "chat"
let asked = { text: "", name: "" }; // the question that the cards answer
let writing = false;
let undoing = false;
let undone; // the newest lesson left by the last undoing; "" if none was left
let follows = false; // whether the question is a follow-up
let ending = ""; // the id of the answer that was judged last

// --- asking

const ask = (text, how) => alone(() => answers(text, how));

async function answers(text, { followUp = false, again = "" } = {}) {
  const response = await send("api/ask", { text, follow_up: followUp, again });
  if (find("prompt").value === text) find("prompt").value = "";
  if (followUp) find("follow").checked = false;
  asked = { text, name: again };
  for (const [id] of picks()) cards.delete(id);
  find("welcome").hidden = true;
  find("question").hidden = false;
  find("asked").textContent = text;
  find("answers").replaceChildren();
  find("held-out").hidden = find("talk").hidden = find("earlier").hidden = true;
  busy(true);
  try {
    for await (const [name, data] of events(response)) {
      if (name === "answer") {
        const card = cards.get(data.answer) ?? add(find("answers"), data.answer, { pick: true });
        card.text += data.delta;
        card.body.textContent = card.text;
      }
      if (name === "done") { busy(false); settle(data); }
    }
  } finally {
    if (writing) busy(false);
  }
}

function busy(now) {
  writing = now;
  find("answers").setAttribute("aria-busy", String(now));
  find("turns").setAttribute("aria-busy", String(now));
  find("stop").hidden = !now;
  find("hint").textContent = now || mode === "chat" ? "" : "Which one is best? Press its number, or correct one.";
}

function settle({ question, answers, held_out: heldOut, behind, earlier }) {
  asked.name = question;
  const shown = new Set(answers.map((answer) => answer.id));
  for (const [id, card] of picks()) if (!shown.has(id)) { card.item.remove(); cards.delete(id); }
  for (const answer of answers) {
    const card = cards.get(answer.id) ?? add(find("answers"), answer.id, { pick: true });
    card.count.textContent = answer.count > 1 ? `written ${answer.count} times` : "";
    fill(card, answer);
  }
  number(); // equal answers were merged
  find("held-out").hidden = !heldOut;
  follows = earlier.length > 0;
  find("earlier").hidden = !follows || mode === "chat";
  find("earlier").replaceChildren(...earlier.map(({ role, content }) =>
    element("li", {}, element("strong", {}, role === "user" ? "You" : "Model"), ` ${content}`)));
  announce(`${answers.length} answers. ${answers.map((answer, at) => `${at + 1}: ${answer.text}`).join(" ")}`);
  if (answers.length === 1) find("hint").textContent = "All samples agree: rate or correct it.";
  if (behind) find("hint").textContent = late;
}

// --- teaching

actions.taught = async (kind, answer, result) => {
  const card = cards.get(answer);
  if (mode === "chat" && kind === "pick") { // the conversation goes on from the better answer
    find("question").hidden = true;
    await refresh();
  } else if (card && !["none", "good_talk", "bad_talk"].includes(kind)) {
    ending = answer;
    find("talk").hidden = !follows;
  }
  find("hint").textContent = result.learned ? "Learned. Press r for five others, or b to see before and after." : result.why;
};
actions.others = (answer) => ask(lastSaid(answer), { again: questionOf(answer) });

actions.undo = undo;
actions.busy = busy;

const questionOf = (answer) => answer.slice(0, answer.lastIndexOf("-"));

function lastSaid(answer) {
  return cards.get(answer).item.previousElementSibling?.textContent ?? "";
}

async function undo(lesson) {
  const kind = state.lessons.find(({ id }) => id === lesson)?.what.kind;
  undoing = true;
  show(state);
  let result;
  try {
    result = await (await send(`api/lesson/${lesson}`, {}, "DELETE")).json();
  } finally {
    undoing = false;
    undone = result && (state.lessons.find((one) => one.id !== lesson)?.id ?? "");
    show(state);
  }
  forget(lesson);
  find("hint").textContent = "";
  if (mode === "chat" && ["pick", "correct"].includes(kind)) await refresh(); // the conversation is as it was before
  announce(`Undone in ${result.seconds.toFixed(1)} s.`);
}

// --- the day's state

function show(now) {
  state = now;
  const { right, of, chance } = now.guessed;
  const last = now.lessons[0];
  const parts = now.ready ? [last ? told(last, last.what.kind) : "Ready: ask something."] : [now.why];
  if (now.ready && undone === (last?.id ?? "")) parts[0] = "Undone";
  if (undoing) parts[0] = "Undoing; the lessons after it are learned again …";
  if (of) parts.push(`it guessed ${right} of your last ${of} picks (by chance: ${chance})`);
  if (now.day_kl) parts.push(`${Math.max(1, Math.round(100 * now.day_kl / now.day_kl_limit))} % of the change allowed in a day`);
  say(parts.join(" · "));
  find("live").checked = now.live;
  for (const button of [find("ask-button"), ...document.querySelectorAll(".example")]) button.disabled = !now.ready;
  find("no-lessons").hidden = !now.ready || now.lessons.length > 0;
  find("follow-label").hidden = mode === "chat"
    || !now.lessons.some((lesson) => ["pick", "correct", "praise", "good_talk"].includes(lesson.what.kind));
  find("lessons").replaceChildren(...now.lessons.map(item));
}

function item(lesson) {
  const { kind, question, text } = lesson.what;
  const undoing = element("button", { type: "button", onclick: attempt(() => undo(lesson.id)) }, "Undo");
  undoing.setAttribute("aria-label", `Undo: ${names[kind]} ${text.slice(0, 60)}`);
  return element("li", {}, undoing, element("strong", {}, names[kind]),
    ` ${short(text, 120)}`, ...(question ? [element("br"), `“${short(question, 60)}”`] : []),
    element("div", { className: "effect", title: figures(lesson) }, told(lesson, kind)));
}

// --- modes

async function choose(now) {
  await stopped(); // or its answers would still come to the page, hidden
  mode = now;
  localStorage.setItem("mode", now);
  document.querySelector(`[name=mode][value=${now}]`).checked = true;
  cards.clear();
  find("question").hidden = find("before-after").hidden = true;
  find("chat").hidden = find("talks").hidden = mode !== "chat";
  find("prompt-label").textContent = mode === "chat" ? "Your message" : "Your question";
  find("ask-button").textContent = mode === "chat" ? "Send" : "Ask";
  if (mode === "chat") {
    find("chat").after(find("ask"));
    find("welcome").hidden = true;
    await Promise.all([open(), list()]);
  } else {
    find("question").before(find("ask"));
    const last = await get("api/question");
    if (last.question) {
      find("welcome").hidden = true;
      find("question").hidden = false;
      find("asked").textContent = asked.text = last.text;
      find("answers").replaceChildren();
      settle(last);
    }
  }
  show(state);
}

// --- keys

const others = async () => {
  await stopped(); // the question has its name only once its answers are there
  const answer = current();
  return cards.get(answer)?.pick === false ? actions.others(answer) : ask(asked.text, { again: asked.name });
};
const current = () => [...cards].find(([, { item }]) => item.contains(document.activeElement))?.[0]
  ?? picks()[0]?.[0] ?? [...cards.keys()].at(-1);
const compared = (text, name) => alone(async () => {
  const hint = find("hint").textContent;
  busy(true);
  try {
    await compare(text, name);
  } finally {
    busy(false);
    find("hint").textContent = hint;
  }
});
const beforeAfter = async () => {
  await stopped();
  if (mode !== "chat") return compared(asked.text, asked.name);
  const answer = cards.get(ending)?.pick === false ? ending : [...cards].filter(([, card]) => !card.pick).at(-1)?.[0];
  return answer && compared(lastSaid(answer), questionOf(answer));
};
const keys = {
  0: () => teach("none", current()), e: () => edit(current()), x: () => chooseWord(current()),
  "+": () => teach("praise", current()), "-": () => teach("blame", current()), r: others, b: beforeAfter, t: accept,
  w: () => why(current()),
  z: () => state.lessons[0] && undo(state.lessons[0].id), Escape: () => writing && send("api/stop"),
  "/": () => find("prompt").focus(), "?": () => find("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("textarea, input:not([type=checkbox]), dialog");
  if (typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || !find("keys").checked) return;
  const chosen = !writing && picks()[Number(event.key) - 1]?.[0];
  const action = chosen ? () => teach("pick", chosen) : keys[event.key];
  if (!action || ("0exrbw+-".includes(event.key) && !cards.size)) return;
  event.preventDefault();
  attempt(action)();
});

find("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = find("prompt").value;
  if (mode === "chat") { attempt(chat)(text, busy); return; }
  find("prompt").blur(); // so that the number keys pick
  const followUp = find("follow").checked;
  attempt(ask)(text, { followUp });
});
find("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (!event.repeat) find("ask").requestSubmit();
  }
  if (event.key === "Escape") find("prompt").blur();
});
find("words").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const text = find("text").value;
    await once(find("words"), () => teach("words", null, { text }));
    if (find("text").value === text) find("text").value = "";
  })();
});
find("none").onclick = attempt(() => teach("none", current()));
find("good-talk").onclick = attempt(() => teach("good_talk", ending));
find("bad-talk").onclick = attempt(() => teach("bad_talk", ending));
find("others").onclick = attempt(others);
for (const button of document.querySelectorAll(".compare")) button.onclick = attempt(beforeAfter);
for (const button of document.querySelectorAll(".example")) button.onclick = attempt(() => ask(button.textContent));
find("stop").onclick = attempt(() => send("api/stop"));
find("help-open").onclick = () => find("help").showModal();
find("live").onchange = attempt(() => send("api/live", { on: find("live").checked }));
find("keys").checked = localStorage.getItem("keys") !== "off";
find("keys").onchange = () => localStorage.setItem("keys", find("keys").checked ? "on" : "off");
for (const choice of document.querySelectorAll("[name=mode]")) choice.onchange = attempt(() => choose(choice.value));

window.addEventListener("hashchange", () => location.reload()); // a new link, opened in the same tab

attempt(async () => {
  const token = new URLSearchParams(location.hash.slice(1)).get("t");
  if (token) {
    await send("api/session", { token });
    history.replaceState(null, "", location.pathname); // not into bookmarks
  }
  show(await get("api/state"));
  attempt(choose)(mode);
  const source = new EventSource("api/events");
  source.addEventListener("state", (event) => show(JSON.parse(event.data)));
  source.onerror = () => say("The classroom does not answer: is `nightschool teach` still running?");
})();
