/** Credits: the balance and the movements; and the erasure of the account. Loaded when it is opened. */
import { close, confirmWord, show } from "./dialogs.js";
import { h } from "./dom.js";
import { count, moment, until } from "./format.js";
import { movementsOf } from "./ledger_lines.js";
import { titleOf } from "./sidebar.js";
import { chatsOfAll } from "./usage_chart.js";

const ERASED =
  "All your conversations, chats, files and connections are deleted, running chats are stopped, remaining credits " +
  "are lost, and you can no longer sign in. This cannot be undone.";

/** The account: credits and its erasure, after which `onErased` is called. */
export async function openCredits(api, onErased) {
  show("Credits", h("p", { class: "muted" }, "Loading…"));
  try {
    const [balance, ledger] = await Promise.all([api.credits(), api.ledger()]);
    const lines = movementsOf(ledger.entries);
    const movements = history(lines);
    show("Credits", overview(balance), movements, erasure(api, onErased));
    const questions = await questionsOf(api, lines).catch(() => new Map()); // the figures say enough
    movements.replaceWith(history(lines, questions));
  } catch (problem) {
    show("Credits", h("p", { class: "problem" }, problem.message));
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

/** The question of each chat: `Map(chat id → {href, title})`; deleted chats are left out. */
async function questionsOf(api, lines) {
  const ids = lines.map((line) => line.chatId).filter(Boolean);
  if (ids.length === 0) return new Map();
  const [chats, { conversations }] = await Promise.all([chatsOfAll(api, ids), api.conversations()]);
  const titles = new Map(
    conversations.map((conversation) => [conversation.conversation_id, titleOf(conversation)]),
  );
  return new Map(
    chats
      .filter((chat) => titles.has(chat.conversation_id))
      .map(({ chat_id: id, conversation_id: conversation, message_id: message }) => [
        id,
        { href: `#${conversation}/${message}`, title: `${titles.get(conversation)} (${message})` },
      ]),
  );
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
