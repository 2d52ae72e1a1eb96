/** The receipt of a chat: its time and cost by step. Loaded when it is opened. */
import { loading } from "./dialogs.js";
import { h } from "./dom.js";
import { compared, count, dollars, plural, seconds, soFar } from "./format.js";
import { nameOf, timeline } from "./receipt_lines.js";
import { s } from "./svg.js";

export async function openReceipt(api, chatId) {
  const show = loading("Receipt");
  try {
    const receipt = await api.receipt(chatId);
    show(totals(receipt), picture(receipt), aws(receipt), notes(receipt));
  } catch (problem) {
    show(h("p", { class: "problem" }, problem.message));
  }
}

function totals(receipt) {
  const { chat_id: id, model, fictional, memory, totals: sum } = receipt;
  const { fresh, cache_write: written, cache_read: read, output } = sum.usage;
  const facts = [
    ["Charged", plural(sum.credits, "credit")],
    ["Model", `${dollars(sum.model_dollars)}${fictional ? ", fictional" : ""}${model ? ` · ${model}` : ""}`],
    ["Memory", compared(memory.dollars, memory.full_history_dollars)],
    ["Conversation", soFar(receipt)],
    sum.aws_dollars !== null && ["AWS", `${dollars(sum.aws_dollars)}, estimated`],
    [
      "Tokens",
      `${count(fresh)} fresh, ${count(written)} written to and ${count(read)} read from the cache, ` +
        `${count(output)} out`,
    ],
    ["Chat", h("code", {}, id)],
  ];
  return h(
    "dl",
    { class: "facts" },
    facts.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

const percent = (part) => `${(part * 100).toFixed(2)}%`;

/** A table of the steps, each with a bar on a common time axis and its figures. */
function picture(receipt) {
  const { seconds: whole, rows } = timeline(receipt);
  if (rows.length === 0) return h("p", { class: "muted" }, "Nothing has run yet.");
  const heads = ["Step", `Time, ${seconds(whole)} in all`, "Took", "Dollars", "Credits"];
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Steps" },
    h(
      "table",
      { class: "receipt" },
      h("caption", {}, "What was done, in order"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, column) => h("th", { scope: "col", class: column > 1 ? "number" : null }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) => step(row)),
      ),
    ),
  );
}

function step(row) {
  const marks = [row.failed && "failed", row.estimated && "estimated"].filter(Boolean).join(", ");
  return h(
    "tr",
    { class: `of-${row.kind}${row.failed ? " of-failed" : ""}` },
    h("th", { scope: "row" }, row.name, marks && h("span", { class: "fine muted" }, ` ${marks}`)),
    h("td", { class: "when" }, bar(row)),
    h("td", { class: "number" }, row.seconds === null ? "–" : seconds(row.seconds)),
    h(
      "td",
      { class: "number" },
      row.kind === "tool" || row.kind === "wait" ? "–" : dollars(row.dollars),
      row.share > 0 && share(row.share),
    ),
    h("td", { class: "number" }, row.credits ? count(row.credits) : "–"),
  );
}

/** A step's time; the paler part is the wait for the first piece. */
function bar({ from, took, first }) {
  if (from === null) return "";
  const width = Math.max(took, 0.004);
  return s(
    "svg",
    { class: "step-bar", "aria-hidden": "true" },
    s("rect", { class: "line", x: 0, y: "50%", width: "100%", height: 1 }),
    s("rect", { class: "took", x: percent(from), width: percent(width), height: "100%", rx: 2 }),
    first > 0
      ? s("rect", { class: "first", x: percent(from), width: percent(first), height: "100%", rx: 2 })
      : [],
  );
}

const share = (part) =>
  s(
    "svg",
    { class: "share-bar", "aria-hidden": "true" },
    s("rect", { class: "line", width: "100%", height: "100%", rx: 2 }),
    s("rect", { class: "took", width: percent(part), height: "100%", rx: 2 }),
  );

function aws({ lines }) {
  const rows = lines.filter((line) => line.kind === "aws" && line.dollars > 0);
  if (rows.length === 0) return "";
  return h(
    "details",
    {},
    h("summary", {}, "AWS, as an estimate"),
    h(
      "dl",
      { class: "facts" },
      rows.map((line) => h("div", {}, h("dt", {}, nameOf(line)), h("dd", {}, dollars(line.dollars)))),
    ),
  );
}

function notes(receipt) {
  const { price_known: known, fictional, lines, differences, for_operator: forOperator } = receipt;
  const missing = lines.find((line) => line.kind === "summary")?.missing;
  const said = [
    fictional &&
      "The offline model answered: its tokens and dollars are fictional, what the model would have cost.",
    missing > 0 && `Summaries that the model left out: ${count(missing)}. Extracts stand for them.`,
    receipt.tools_changed &&
      "Its client brought other tools than before: the model's cache of the conversation was not read.",
    known === false &&
      "A model here has no known price: it is counted as its maker's dearest, which is a guess.",
    forOperator && `For the operator: ${forOperator}`,
    ...differences.map((difference) => `Does not add up: ${difference}`),
  ].filter(Boolean);
  return (
    said.length > 0 &&
    h(
      "ul",
      { class: "fine muted" },
      said.map((line) => h("li", {}, line)),
    )
  );
}
