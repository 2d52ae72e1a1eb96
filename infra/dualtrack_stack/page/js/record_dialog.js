/** A record, whole, from its id. */
import { AnswerText } from "./answer_text.js";
import { close, loading } from "./dialogs.js";
import { h, recordButton } from "./dom.js";
import { isFile, partsOf } from "./exchange.js";
import { fileChips, placed } from "./file_chip.js";
import { count, moment, plural, seconds, tokens } from "./format.js";
import { graphResult, shapeOf } from "./graph_result.js";
import { textPreview } from "./stored_files.js";

/** A longer question is sent as a summary later; in characters. */
const LONG_QUERY = 2000;

const KINDS = { tool_call: "Tool call", summary: "Summary", digest: "Digest" };

/** `onAsk(text)`: the reader wants to ask this. */
const STATES = { failed: "failed", declined: "declined", unknown: "it began, and may have run" };

export async function openRecord(api, conversationId, recordId, onAsk) {
  const show = loading(`Record ${recordId}`);
  try {
    const record = await api.record(conversationId, recordId);
    show(facts(record), ...[body(record, onAsk)].flat(), related(record));
  } catch (problem) {
    show(h("p", { class: "problem" }, problem.message));
  }
}

function facts(record) {
  const kind =
    KINDS[record.type] ??
    (isFile(record)
      ? "File"
      : record.role === "user"
        ? "Question"
        : record.record_id.endsWith("-r")
          ? "Response"
          : record.thinking_characters
            ? "Thinking, and text before tools"
            : "Interim text");
  const length = record.result ?? record.content;
  const entries = [
    ["Kind", kind],
    record.tool && ["Tool", h("code", {}, record.tool)],
    record.turn && ["Turn", record.turn],
    record.tool && ["State", STATES[record.status] ?? `done in ${seconds(record.seconds)}`],
    ["Stored", moment(record.created_at)],
    ["Length", `${plural([...length].length, "character")}, about ${count(tokens(length))} tokens`],
    record.attachments && ["Files", fileChips(placed(record.attachments, record.record_id))],
  ];
  return h(
    "dl",
    { class: "facts" },
    entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function body(record, onAsk) {
  if (record.type === "tool_call") {
    return h(
      "div",
      {},
      h("h3", {}, "Input"),
      h("pre", { class: "raw", tabindex: "0" }, JSON.stringify(record.input, null, 2)),
      h("h3", {}, "Result"),
      result(record, onAsk),
    );
  }
  if (isFile(record)) return textPreview(record.content);
  if (record.role === "user" || record.type === "summary" || record.type === "digest")
    return h("p", { class: "plain" }, record.content);
  const { thinking, text } = partsOf(record);
  const answer = h("div", { class: "prose" });
  new AnswerText(answer).update(text);
  return [
    thinking &&
      h("details", { class: "thinking" }, h("summary", {}, "Thinking"), h("p", { class: "plain" }, thinking)),
    answer,
  ].filter(Boolean);
}

/** A result as tables and a drawing if it has such a shape, followed by its text. */
function result(record, onAsk) {
  const text = h("pre", { class: "raw", tabindex: "0" }, record.result);
  const shape = record.is_error ? null : shapeOf(record.result);
  if (!shape) return text;
  const ask = (name) => {
    close();
    onAsk(`What is connected to ${name}?`);
  };
  return h(
    "div",
    {},
    graphResult(shape, ask),
    h("details", { class: "raw-result" }, h("summary", {}, "As the model got it"), text),
  );
}

const FORMS = { note: "The model's note on ", extract: "An extract of ", whole: "All of " };

function related(record) {
  if (record.type === "digest")
    return h(
      "p",
      { class: "related" },
      `Stands for the questions ${record.ref.replace("..", " to ")}; their records are kept whole.`,
    );
  if (record.ref)
    return h("p", { class: "related" }, FORMS[record.form] ?? "Sums up ", recordButton(record.ref));
  const longQuery = /^q\d+$/.test(record.record_id) && [...record.content].length > LONG_QUERY;
  const summarised = record.type === "tool_call" || record.record_id.endsWith("-r") || longQuery;
  return (
    summarised && h("p", { class: "related" }, "Sent later as ", recordButton(`${record.record_id}-sum`))
  );
}
