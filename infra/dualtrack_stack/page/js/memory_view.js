/**
 * The two tracks side by side: every stored record, and its part in the next request to the model. Token
 * figures are the server's estimate, four characters a token.
 */
import { h, recordButton, redraw } from "./dom.js";
import { isFile } from "./exchange.js";
import { count, plural, start, tokens } from "./format.js";

const NONE = "not sent";
const SUMMARIES =
  "Every record is kept whole. The next question is sent with what is short as it is, what is long as the " +
  "model's note, a summary or an extract, and the oldest as one digest. The model can fetch any record by its id.";
const RECORDS =
  "Every record is kept whole. The next question is sent with earlier questions and answers in full, as far " +
  "as this agent looks back.";

/** The digest that the next question sends, if there is one, and the last query in it. Pure. */
export function digestIn(summarised) {
  const digest = summarised.find((record) => record.type === "digest") ?? null;
  return { digest, through: digest ? Number(digest.ref.split("..q")[1]) : 0 };
}

/**
 * Rows by query: `{query, title, rows: [{stored, sent}], settled, folded}`; folded queries are not sent.
 * Pure.
 */
export function pairTracks(full, summarised) {
  const { through } = digestIn(summarised);
  const isFolded = (query) => Number(query.slice(1)) <= through;
  const sent = new Map(
    summarised
      .filter((record) => !isFolded(record.record_id.split("-")[0]))
      .map((record) => [record.ref ?? record.record_id, record]),
  );
  const groups = new Map();
  for (const record of full) {
    const query = record.record_id.split("-")[0];
    const group = groups.get(query) ?? { query, title: record.content, rows: [] };
    group.rows.push({ stored: record, sent: sent.get(record.record_id) ?? null });
    groups.set(query, group);
  }
  const isSettled = (group) => group.rows.some((row) => row.sent && row.stored.record_id !== group.query);
  const newest = Math.max(
    0,
    ...[...groups.values()].filter(isSettled).map((group) => Number(group.query.slice(1))),
  );
  return [...groups.values()].map((group) => ({
    ...group,
    folded: isFolded(group.query),
    settled: Number(group.query.slice(1)) <= newest,
  }));
}

/** A record as sent to the model, id first. */
const header = ({ record_id, ref, size }) =>
  `[ID:${[record_id, ref && `ref:${ref}`, size && kilobytes(size)].filter(Boolean).join(", ")}]`;

const kilobytes = (bytes) => `${Math.max(Math.round(bytes / 1_000), 1)} KB`;

const size = (record) => tokens(`${header(record)} ${record.result ?? record.content}`);

const total = (rows, side) => rows.reduce((sum, row) => sum + (row[side] ? size(row[side]) : 0), 0);

/**
 * How an agent's past is sent, by the policy of its profile; an agent that is gone sends the summarised track.
 * Pure.
 */
export function explained({ profiles }, name) {
  const policy = profiles.find((profile) => profile.name === name)?.history.policy ?? "dual_track";
  return policy === "dual_track" ? SUMMARIES : RECORDS;
}

/** `offered`: the server's tools and profiles. */
export function drawMemory(element, conversation, summarised, offered) {
  const groups = pairTracks(conversation.records, summarised.records);
  const rows = groups.flatMap((group) => group.rows);
  if (rows.length === 0) {
    element.replaceChildren(h("p", { class: "empty muted" }, "Nothing is stored yet. Ask something first."));
    return;
  }
  const { digest } = digestIn(summarised.records);
  const sent = total(rows, "sent") + (digest ? size(digest) : 0);
  redraw(
    element,
    overview(total(rows, "stored"), sent, explained(offered, conversation.profile)),
    table(groups, digest),
  );
}

function overview(stored, sent, what) {
  return h(
    "div",
    { class: "overview" },
    h("p", { class: "overview-line" }, "What the next question sends of what is stored"),
    bar("Stored", stored, stored, "stored"),
    bar("Sent", sent, stored, "sent"),
    h("p", { class: "fine muted" }, what),
  );
}

function bar(name, value, most, kind) {
  const fill = h("span", { class: "bar-fill" });
  fill.style.width = `${Math.max(1, Math.min(100, (value / Math.max(most, 1)) * 100))}%`;
  return h(
    "p",
    { class: `bar-line ${kind}` },
    h("span", { class: "bar-name" }, name),
    h("span", { class: "bar-track", "aria-hidden": "true" }, fill),
    h("span", { class: "bar-value" }, `${count(value)} tokens`),
  );
}

function table(groups, digest) {
  return h(
    "table",
    { class: "tracks" },
    h("caption", { class: "visually-hidden" }, "What is stored and what is sent, record by record"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Stored", h("span", { class: "muted" }, " full track")),
        h("th", { scope: "col" }, "Sent", h("span", { class: "muted" }, " summarised track")),
      ),
    ),
    digest && digestRow(digest),
    groups.map((group) => body(group, digest)),
  );
}

function digestRow(digest) {
  const title = `Digest of ${digest.ref.replace("..", " to ")}`;
  return h(
    "tbody",
    { class: "digest" },
    h(
      "tr",
      { class: "query-row" },
      h("th", { scope: "rowgroup", colspan: "2" }, h("span", { class: "query-title" }, title)),
    ),
    h(
      "tr",
      {},
      h("td", { class: "stored" }, h("p", { class: "cell-text muted" }, "every record below, whole")),
      h("td", { class: "sent" }, cell(digest)),
    ),
  );
}

function body(group, digest) {
  return h(
    "tbody",
    {},
    h(
      "tr",
      { class: "query-row" },
      h(
        "th",
        { scope: "rowgroup", colspan: "2" },
        h("span", { class: "query-title" }, start(group.title, 90)),
      ),
    ),
    group.rows.map((row) =>
      h(
        "tr",
        {},
        h("td", { class: "stored" }, cell(row.stored)),
        h("td", { class: "sent" }, other(row, group, digest)),
      ),
    ),
  );
}

function cell(record) {
  const text = record.result ?? record.content;
  return [
    h(
      "p",
      { class: "cell-head" },
      recordButton(record.record_id),
      h("span", { class: "muted" }, name(record)),
      h("span", { class: "cell-size" }, plural(size(record), "token")),
    ),
    h("p", { class: "cell-text" }, start(text, 420)),
  ];
}

function other({ stored, sent }, group, digest) {
  if (group.folded)
    return h(
      "p",
      { class: "cell-text muted" },
      /-a\d+$/.test(stored.record_id) ? NONE : ["in ", recordButton(digest.record_id)],
    );
  if (sent) return cell(sent);
  if (/-[af]\d+$/.test(stored.record_id)) return h("p", { class: "cell-text muted" }, NONE);
  return h("p", { class: "cell-text muted" }, group.settled ? NONE : "to come");
}

function name(record) {
  if (record.type === "tool_call") return record.tool;
  if (record.type === "summary") return record.form ?? record.type;
  if (record.type === "digest") return record.type;
  if (isFile(record)) return "file";
  if (record.role === "user") return "question";
  return record.record_id.endsWith("-r") ? "response" : "interim text";
}
