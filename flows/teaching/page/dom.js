// What the page's parts share: elements, requests, what is being written, and the line that says what is going on.

export const find = (id) => document.getElementById(id);
export const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
export const say = (text) => { find("status").textContent = text; };
export const announce = (text) => { find("announcer").textContent = text; };
export const attempt = (work) => (...args) => Promise.resolve(work(...args)).catch((error) => {
  say(error.message);
  find("hint").textContent = error.message; // near what was clicked, wherever the page is scrolled to
});

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error((await response.json()).error);
  return response.json();
}

export async function send(path, body = {}, method = "POST") {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: `error ${response.status}` }));
    throw new Error(error);
  }
  return response;
}

let answers = null; // those that are being written: the engine writes those to one request at a time

// Write answers, once those that are being written have been stopped and recorded.
export async function alone(write) {
  await stopped();
  answers = write();
  try {
    await answers;
  } finally {
    answers = null;
  }
}

export async function stopped() {
  while (answers) { // they may end, or others begin, meanwhile
    const current = answers;
    await send("api/stop");
    await current.catch(() => {});
  }
}

export async function written() {
  while (answers) await answers.catch(() => {});
}

export async function* events(response) {
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
      if (name === "error") throw new Error(JSON.parse(data).error);
      yield [name, JSON.parse(data)];
    }
  }
}
