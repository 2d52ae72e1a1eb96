/**
 * Dollars and credits of a conversation by question: what memory cost, what a full history would have, credits charged.
 * Plain SVG, with the figures in a table below.
 */
import { h } from "./dom.js";
import { count, difference, dollars, plural, soFar } from "./format.js";
import { s } from "./svg.js";

const SHOWN = 60; // the newest questions
const STEP = 28;
const TALL = 120;
const CREDITS = 44;
const LEFT = 72;

/** `[{query, own, full, credits}]` of chat objects in order, the newest `SHOWN`. Pure. */
export function usageOf(chats) {
  return chats.slice(-SHOWN).map((chat) => ({
    query: chat.message_id,
    own: chat.memory.dollars,
    full: chat.memory.full_history_dollars,
    credits: chat.credits_used,
  }));
}

/** The conversation's cost in words, from the last of its chats. Pure. */
export const costsOf = (chats) => soFar(chats.at(-1));

/** The number rounded up to one digit and zeros. Pure. */
export function ceiling(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return Math.ceil(most / power) * power;
}

export function usageChart(usage, costs) {
  const credits = usage.reduce((total, question) => total + question.credits, 0);
  const words = `${costs}; ${plural(credits, "credit")}.`;
  return h(
    "section",
    { class: "usage" },
    h("h2", {}, "Dollars and credits by question"),
    h("p", { class: "fine muted" }, words),
    h(
      "p",
      { class: "legend fine" },
      h("span", { class: "key full" }, "full history"),
      h("span", { class: "key own" }, "this memory"),
      h("span", { class: "key charged" }, "credits"),
    ),
    h(
      "div",
      {
        class: "table-scroll",
        tabindex: "0",
        role: "region",
        "aria-label": "Picture of dollars and credits",
      },
      drawing(usage, words),
    ),
    h("details", {}, h("summary", {}, "The same as a table"), table(usage)),
  );
}

function drawing(usage, words) {
  const most = ceiling(Math.max(...usage.map((question) => Math.max(question.full, question.own))));
  const dearest = ceiling(Math.max(...usage.map((question) => question.credits)));
  const [width, height] = [LEFT + usage.length * STEP + 8, TALL + CREDITS + 40];
  const base = TALL + 8;
  const under = base + 20 + CREDITS;
  const bars = usage.map((question, index) => {
    const x = LEFT + index * STEP;
    const cost = (name, at) => column(name, x + at, base, (question[name] / most) * TALL, 10);
    return [
      cost("full", 3),
      cost("own", 14),
      column("charged", x + 3, under, (question.credits / dearest) * CREDITS, 21),
      label(x + 14, base + 14, question.query.slice(1)),
    ];
  });
  return s(
    "svg",
    {
      class: "usage-drawing",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": words,
    },
    axis(8, base, dollars(most)),
    axis(base + 20, under, count(dearest)),
    bars,
  );
}

const column = (name, x, base, height, width) =>
  s("rect", {
    class: name,
    x,
    y: base - Math.max(height, 0.5),
    width,
    height: Math.max(height, 0.5),
    rx: 1.5,
  });

const label = (x, y, text) => s("text", { x, y, "text-anchor": "middle" }, text);

const axis = (top, base, most) => [
  s("path", { class: "axis", d: `M${LEFT} ${top}V${base}` }),
  s("text", { x: LEFT - 6, y: top + 8, "text-anchor": "end" }, most),
  s("text", { x: LEFT - 6, y: base, "text-anchor": "end" }, "0"),
];

function table(usage) {
  const heads = ["Question", "Full history", "This memory", "Difference", "Credits"];
  const row = (question) =>
    [
      dollars(question.full),
      dollars(question.own),
      difference(question.own, question.full),
      count(question.credits),
    ].map((text) => h("td", { class: "number" }, text));
  return h(
    "table",
    { class: "ledger" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((head, index) => h("th", { scope: "col", class: index > 0 ? "number" : null }, head)),
      ),
    ),
    h(
      "tbody",
      {},
      usage.map((question) => h("tr", {}, h("th", { scope: "row" }, question.query), row(question))),
    ),
  );
}

/** The chat objects of these ids in order, read a few at a time; deleted ones are left out. */
export async function chatsOfAll(api, ids, signal, atOnce = 6) {
  const wanted = ids.slice(-SHOWN);
  const chats = new Array(wanted.length).fill(null);
  let next = 0;
  const work = async () => {
    while (next < wanted.length) {
      const index = next++;
      chats[index] = await api.chat(wanted[index], signal).catch((problem) => {
        if (problem.name === "AbortError") throw problem;
        return null;
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return chats.filter((chat) => chat?.memory && chat.ended_at);
}
