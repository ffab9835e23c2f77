// The model's card: what it is, its last report, the blind tests day by day, and tonight's night at once.

import { attempt, element, find, get, say, send } from "./dom.js";

async function show() {
  if (!find("model").open) return;
  const card = await get("api/model");
  const facts = [["Name", card.name], ["Champion", card.champion], ["Made", new Date(card.born).toLocaleString()],
    ["System prompt", card.system ?? "the chat template's"], ["Longest answer", `${card.longest} tokens (teach.max_answer_tokens)`]];
  find("card").replaceChildren(...facts.flatMap(([name, fact]) => [element("dt", {}, name), element("dd", {}, fact)]));
  find("report").hidden = !card.report;
  find("no-days").hidden = card.days.length > 0;
  find("days").replaceChildren(...card.days.map(({ day, picks, won, chance }) => {
    const said = `${+won.toFixed(1)} of ${picks}, chance ${chance.toFixed(1)}`;
    const meter = element("meter", { min: 0, max: picks, value: won });
    meter.setAttribute("aria-label", `Blind test of ${day}`);
    return element("li", {}, element("strong", {}, day), " ", meter, ` ${said}`);
  }));
}

find("model").addEventListener("toggle", attempt(show));
find("night").onclick = attempt(async () => {
  if (!confirm("Start tonight's night now? The classroom is closed until it ends.")) return;
  const { log } = await (await send("api/night")).json();
  say(`The night begins; it writes to ${log}.`);
});
