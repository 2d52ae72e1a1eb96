/** Credits: the balance and the movements; and the erasure of the account. Loaded when it is opened. */

import { agentName } from "./agents.js";
import { close, confirmWord, loading, show } from "./dialogs.js";
import { h } from "./dom.js";
import { compared, count, moment, plural, until } from "./format.js";
import { movementsOf, sumsOf } from "./ledger_lines.js";
import { titleOf } from "./sidebar.js";
import { chatsOfAll } from "./usage_chart.js";

const NOTHING = { chats: [], questions: new Map(), keys: new Map() };

const ERASED =
  "All your conversations, chats, files and connections are deleted, running chats are stopped, remaining credits " +
  "are lost, and you can no longer sign in. This cannot be undone.";

/** The account: credits and its erasure, after which `onErased` is called. */
export async function openCredits(api, onErased) {
  const draw = loading("Credits");
  try {
    const [balance, ledger] = await Promise.all([api.credits(), api.ledger()]);
    const lines = movementsOf(ledger.entries);
    const movements = history(lines);
    draw(overview(balance), movements, erasure(api, onErased));
    const { chats, questions, keys } = await detailsOf(api, lines).catch(() => NOTHING); // the figures say enough
    const detailed = h("div", {}, history(lines, questions), usage(lines, chats, keys));
    movements.replaceWith(detailed);
  } catch (problem) {
    draw(h("p", { class: "problem" }, problem.message));
  }
}

function overview({ plan, available, held, daily, monthly, pack }) {
  const entries = [
    ["Plan", plan],
    ["Today", `${count(daily.used)} of ${count(daily.limit)} used, new ${until(daily.resets_at)}`],
    monthly && ["This month", `${count(monthly.used)} of ${count(monthly.limit)} used`],
    ["Pack", `${count(pack.remaining)} left`],
    held > 0 && ["Held", `${count(held)} for a running chat`],
  ];
  return h(
    "div",
    {},
    h("p", { class: "balance" }, h("strong", {}, count(available)), " credits left"),
    h(
      "dl",
      { class: "facts" },
      entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
  );
}

/**
 * The chats of the lines, `questions`: `Map(chat id → {href, title})` without those of deleted conversations, and the
 * names of `keys` by id.
 */
async function detailsOf(api, lines) {
  const ids = lines.map((line) => line.chatId).filter(Boolean);
  if (ids.length === 0) return NOTHING;
  const [chats, { conversations }, { keys }] = await Promise.all([
    chatsOfAll(api, ids),
    api.conversations(),
    lines.some((line) => line.keyId) ? api.keys() : { keys: [] },
  ]);
  const titles = new Map(
    conversations.map((conversation) => [conversation.conversation_id, titleOf(conversation)]),
  );
  const questions = new Map(
    chats
      .filter((chat) => titles.has(chat.conversation_id))
      .map(({ chat_id: id, conversation_id: conversation, message_id: message }) => [
        id,
        { href: `#${conversation}/${message}`, title: `${titles.get(conversation)} (${message})` },
      ]),
  );
  return { chats, questions, keys: new Map(keys.map(({ key_id: id, name }) => [id, name])) };
}

/** What these lines cost by agent, by key and by day, and what memory has saved or cost in their chats. */
function usage(lines, chats, keys) {
  const agents = new Map(chats.map(({ chat_id: id, profile }) => [id, agentName(profile)]));
  const sums = [
    ["By agent", sumsOf(lines, ({ chatId }) => agents.get(chatId) ?? "Running or deleted")],
    ["By key", sumsOf(lines, ({ keyId }) => (keyId ? (keys.get(keyId) ?? "A deleted key") : "Signed in"))],
    ["By day (UTC)", sumsOf(lines, ({ at }) => at.slice(0, 10))],
  ];
  if (chats.length === 0) return "";
  return h(
    "section",
    {},
    h("h3", {}, "Of these movements"),
    h(
      "dl",
      { class: "facts" },
      sums.map(([name, parts]) =>
        h(
          "div",
          {},
          h("dt", {}, name),
          h("dd", {}, parts.map(([part, credits]) => `${part}: ${plural(credits, "credit")}`).join(" · ")),
        ),
      ),
      h("div", {}, h("dt", {}, "Memory"), h("dd", {}, memoryOf(chats))),
    ),
  );
}

/** `$0.0041, with the full history $0.0037: +11 %, estimated` over these chats. */
function memoryOf(chats) {
  const sum = (name) => chats.reduce((total, { memory }) => total + memory[name], 0);
  const notes = ["estimated", chats.some((chat) => chat.fictional) && "fictional"].filter(Boolean);
  return `${compared(sum("dollars"), sum("full_history_dollars"))}, ${notes.join(", ")}`;
}

function history(lines, questions = new Map()) {
  if (lines.length === 0) return h("p", { class: "muted" }, "No movements yet.");
  const heads = ["When", "What", "Credits", "Left"];
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Latest movements" },
    h(
      "table",
      { class: "ledger" },
      h("caption", {}, "Latest movements"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        lines.map((line) => movement(line, questions.get(line.chatId))),
      ),
    ),
  );
}

function movement({ at, what, credits, left }, question) {
  return h(
    "tr",
    {},
    h("td", { class: "moment" }, moment(at)),
    h("td", {}, what, question && [": ", h("a", { href: question.href, onclick: close }, question.title)]),
    h("td", { class: "number" }, count(credits)),
    h("td", { class: "number" }, count(left)),
  );
}

function erasure(api, onErased) {
  const erase = async () => {
    if (!(await confirmWord("Erase my account", ERASED, "erase", "Erase everything"))) return;
    try {
      await api.eraseMe();
      onErased();
    } catch (problem) {
      show("Erase my account", h("p", { class: "problem" }, problem.message));
    }
  };
  return h(
    "section",
    {},
    h("h3", {}, "Account"),
    h("button", { type: "button", class: "link-button", onclick: erase }, "Erase my account…"),
  );
}
