/**
 * Export of a conversation: reads all of it, page by page, and saves it as a file.
 */
import { show } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { asJson, asMarkdown, fileName } from "./export_text.js";
import { plural } from "./format.js";

const FORMATS = {
  markdown: { label: "Markdown", extension: "md", type: "text/markdown" },
  json: { label: "JSON", extension: "json", type: "application/json" },
};

export function openExport(api, conversationId, title) {
  const state = h(
    "p",
    { class: "fine muted", role: "status" },
    "All records of the full track; JSON has the summarised track too. Attached files are listed by name and size.",
  );
  const buttons = Object.entries(FORMATS).map(([name, { label }]) =>
    h("button", { type: "button", class: "button", onclick: () => run(name) }, label),
  );
  const closed = new AbortController();
  show("Export the conversation", h("p", {}, `“${title}”`), h("div", { class: "buttons" }, buttons), state);
  byId("dialog").addEventListener("close", () => closed.abort(), { once: true });

  async function run(name) {
    for (const button of buttons) button.disabled = true;
    try {
      const text = await read(
        api,
        conversationId,
        name,
        closed.signal,
        (count) => (state.textContent = `Reading… ${plural(count, "record")}`),
      );
      const { extension, type } = FORMATS[name];
      save(new Blob([text], { type }), fileName(title, extension));
      state.textContent = "Saved.";
    } catch (problem) {
      if (problem.name !== "AbortError") state.textContent = problem.message;
    }
    for (const button of buttons) button.disabled = false;
  }
}

async function read(api, conversationId, format, signal, onCount) {
  let count = 0;
  const onPage = (records) => {
    count += records;
    onCount(count);
  };
  const full = await whole(api, await api.conversation(conversationId, "full", signal, onPage), signal);
  if (format === "markdown") return asMarkdown(full);
  return asJson(
    full,
    await whole(api, await api.conversation(conversationId, "summarised", signal, onPage), signal),
  );
}

/** The conversation with the whole text of records, of which a list has only the first piece. */
async function whole(api, conversation, signal) {
  const records = [];
  for (const record of conversation.records) {
    signal.throwIfAborted();
    records.push(
      record.next_offset ? await api.record(conversation.conversation_id, record.record_id) : record,
    );
  }
  return { ...conversation, records };
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // the download has begun long before
}
