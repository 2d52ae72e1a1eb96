/** A conversation as a file, in Markdown or JSON. Pure. */
import { partsOf } from "./exchange.js";

/** A code block whose fence is longer than any run of backticks in the text. */
export function fenced(text, language = "") {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

const heading = (text) => text.replace(/\s+/g, " ").trim();

const files = (record) =>
  (record.attachments ?? []).map(
    ({ name, media_type: type, size }) => `- File: ${heading(name ?? "unnamed")} (${type}, ${size} bytes)`,
  );

function section(record) {
  const { record_id: id, created_at: at } = record;
  if (record.type === "tool_call") {
    const became = { failed: "failed, ", declined: "declined, ", unknown: "may have run, " };
    const took = `${became[record.status] ?? ""}${record.seconds} s`;
    return [
      `### ${id} · ${record.tool} (${took})`,
      fenced(JSON.stringify(record.input, null, 2), "json"),
      fenced(record.result),
    ];
  }
  if (record.continues) return [`## ${id} · ${at} · ${record.continues} goes on`];
  if (/^q\d+$/.test(id)) return [`## ${id} · ${at}`, record.content, files(record).join("\n")];
  if (/-r$/.test(id))
    return [
      `### ${id} · answer${record.stop && record.stop !== "complete" ? ` (${record.stop})` : ""}`,
      record.content,
    ];
  if (record.thinking_characters) {
    const { thinking, text } = partsOf(record);
    return [`### ${id} · thinking`, fenced(thinking), text];
  }
  return [`### ${id}`, record.role === "user" ? fenced(record.content) : record.content];
}

/** Questions, tool calls and answers of the full track, each under its id. */
export function asMarkdown({ title, conversation_id: id, profile, created_at: created, records }) {
  const head = [
    `# ${heading(title) || "Conversation"}`,
    `- Conversation: ${id}\n- Agent: ${profile}\n- Begun: ${created}\n- Records: ${records.length}`,
  ];
  return `${[...head, ...records.flatMap(section)].filter(Boolean).join("\n\n")}\n`;
}

/** All that the API returns: the conversation, and the records of both tracks. */
export function asJson({ records, track: _track, cursor: _cursor, ...conversation }, summarised) {
  return `${JSON.stringify({ conversation, full: records, summarised: summarised.records }, null, 2)}\n`;
}

/** The file's name: letters and digits of the title, of any script. */
export function fileName(title, extension) {
  const name = title
    .normalize("NFC")
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60);
  return `${name || "conversation"}.${extension}`;
}
