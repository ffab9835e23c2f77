// The chat: one answer at a time. The server keeps the conversations, so that a reload or a restart loses nothing.

import { actions, add, cards, fill, teach } from "./cards.js";
import { alone, announce, attempt, element, events, find, get, send, stopped, written } from "./dom.js";

let conversation = localStorage.getItem("conversation") ?? "";
export const late = "Your last lesson was still being learned: this was written without it.";
let proposal = null; // a correction that the last message seems to make

export async function chat(text, busy) {
  find("prompt").value = ""; // at once, so that a second Enter does not say it again
  try {
    await alone(() => say(text, busy));
  } catch (error) {
    if (!error.recorded) find("prompt").value ||= text;
    throw error;
  }
}

async function say(text, busy) {
  const last = find("turns").lastElementChild;
  const said = element("li", { className: "said" }, text);
  let card = null;
  busy(true);
  try {
    const response = await send("api/chat", { text, conversation });
    propose(null);
    find("turns").append(said);
    for await (const [name, data] of events(response)) {
      if (name === "answer") {
        card ??= add(find("turns"), data.answer, { pick: false });
        card.text += data.delta;
        card.body.textContent = card.text;
      } else if (name === "done") {
        card ??= add(find("turns"), data.answer.id, { pick: false });
        fill(card, data.answer);
        keep(data.conversation);
        if (data.proposal) propose(data.proposal);
        find("held-out-chat").hidden = !data.held_out;
        if (data.behind) find("hint").textContent = late;
        announce(`Model: ${data.answer.text}`);
      }
    }
  } catch (error) {
    if (card) { // the server has recorded what was written so far
      cards.delete(card.id);
      card.tools.remove();
      throw Object.assign(new Error(`${error.message}. Reload the page to see what was kept.`), { recorded: true });
    }
    said.remove();
    if (last) last.scrollIntoView({ block: "nearest" });
    throw error;
  } finally {
    busy(false);
    await list().catch(() => {});
  }
}

// The rest of an answer that was cut off.
actions.goOn = (id) => alone(() => goOn(id));

async function goOn(id) {
  const card = cards.get(id);
  card.more.hidden = true;
  actions.busy(true);
  try {
    for await (const [name, data] of events(await send("api/continue", { answer: id }))) {
      if (name === "answer") card.body.textContent = card.text += data.delta;
      else if (name === "done") fill(card, data.answer);
    }
  } finally {
    actions.busy(false);
    card.more.hidden = !card.cut;
  }
}

function keep(name) {
  conversation = name;
  localStorage.setItem("conversation", name);
}

function propose(found) {
  proposal = found;
  find("proposal").hidden = !found;
  find("proposed").textContent = found?.text ?? "";
}

export const accept = async () => {
  if (!proposal) return;
  const { answer, text } = proposal;
  propose(null);
  await teach("correct", answer, { text });
};

// Show the conversation as it is recorded now, once what is being written has been recorded, too.
export async function refresh() {
  await written();
  await open(conversation);
}

export async function open(name = conversation) {
  await stopped();
  cards.clear();
  propose(null);
  find("turns").replaceChildren();
  keep("");
  if (!name) return;
  const found = await get(`api/conversations/${name}`).catch(() => null);
  if (!found) return; // deleted meanwhile
  keep(name);
  for (const turn of found.turns) {
    if (turn.role === "assistant") fill(add(find("turns"), turn.id, { pick: false }), turn);
    else find("turns").append(element("li", { className: "said" }, turn.text));
  }
}

export async function list() {
  const found = await get("api/conversations");
  find("no-conversations").hidden = found.length > 0;
  find("conversations").replaceChildren(...found.map(({ id, title, at }) => {
    const name = element("button", { type: "button", className: "plain", onclick: attempt(() => open(id)) }, title);
    name.setAttribute("aria-current", String(id === conversation));
    const gone = element("button", { type: "button", onclick: attempt(() => forget(id, title)) }, "Delete");
    gone.setAttribute("aria-label", `Delete: ${title}`);
    const file = element("a", { href: `api/conversations/${id}`, download: `${at.slice(0, 10)}-${id}.json` }, "Export");
    file.setAttribute("aria-label", `Export: ${title}`);
    return element("li", {}, name, element("div", { className: "tools" }, file, gone));
  }));
}

async function forget(id, title) {
  const { learned_by: learned } = await get(`api/conversations/${id}`);
  const kept = learned.length ? ` What ${learned.join(", ")} learned from it stays in those models.` : "";
  if (!confirm(`Delete “${title}” and undo its lessons?${kept}`)) return;
  await send(`api/conversations/${id}`, {}, "DELETE");
  if (id === conversation) await open("");
  await list();
}

find("accept").onclick = attempt(accept);
find("decline").onclick = () => propose(null);
find("new-chat").onclick = attempt(async () => { await open(""); find("prompt").focus(); });
