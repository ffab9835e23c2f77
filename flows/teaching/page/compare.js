// Before and after: the same question to the champion and to today's copy, with the words that differ marked.

import { element, find, send } from "./dom.js";

export async function compare(text, again) {
  const found = await (await send("api/compare", { text, again })).json();
  find("before-after").hidden = false;
  find("compared").textContent = text;
  const [before, after] = [found.champion, found.today].map((answer) => answer.split(/(\s+)/));
  const same = common(before, after);
  const marked = (words, kept) => words.map((word, at) => (kept.has(at) || !word.trim() ? word : element("mark", {}, word)));
  find("champion-says").replaceChildren(...marked(before, new Set(same.map(([one]) => one))));
  find("today-says").replaceChildren(...marked(after, new Set(same.map(([, other]) => other))));
  find("no-change").hidden = found.champion !== found.today;
  find("before-after").scrollIntoView({ block: "nearest" });
}

// The longest common subsequence of two lists, as pairs of indices.
function common(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i][j] = one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}
