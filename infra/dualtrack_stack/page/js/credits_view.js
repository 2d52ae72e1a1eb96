/** Credits: the balance and the movements; and the erasure of the account. Loaded when it is opened. */

import { agentName } from "./agents.js";
import { close, confirmWord, loading, show } from "./dialogs.js";
import { h, redraw } from "./dom.js";
import { compared, count, dollars, moment, plural, until } from "./format.js";
import { movementsOf } from "./ledger_lines.js";
import { questionOf } from "./questions.js";
import { chatsOfAll } from "./usage_chart.js";

const DAYS = 30;
const KINDS = {
  When: "moment",
  Day: "moment",
  Chats: "number",
  Credits: "number",
  Left: "number",
  Dollars: "number",
};
const NOTHING = { chats: [], questions: new Map(), keys: new Map() };

const ERASED =
  "All your conversations, chats, files and connections are deleted, running chats are stopped, remaining credits " +
  "are lost, and you can no longer sign in. This cannot be undone.";

/** The account: credits and its erasure, after which `onErased` is called. */
export async function openCredits(api, onErased) {
  const draw = loading("Credits");
  try {
    const [balance, ledger, spending] = await Promise.all([api.credits(), api.ledger(), api.spending(DAYS)]);
    const lines = movementsOf(ledger.entries);
    const movements = h("div", {}, history(lines));
    draw(overview(balance), movements, erasure(api, onErased));
    // Without names and questions, the figures say enough.
    const { chats, questions, keys } = await detailsOf(api, lines, spending).catch(() => NOTHING);
    redraw(movements, history(lines, questions), memory(chats), spent(spending, keys));
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

/** The chats of the lines, `questions` (`Map(chat id → {href, text})`) of those that are kept, and `keys`' names. */
async function detailsOf(api, lines, spending) {
  const ids = lines.map((line) => line.chatId).filter(Boolean);
  const [chats, { keys }] = await Promise.all([
    chatsOfAll(api, ids),
    spending.keys.length > 0 ? api.keys() : { keys: [] },
  ]);
  const questions = await Promise.all(chats.map((chat) => linkTo(api, chat).catch(() => [])));
  return {
    chats,
    questions: new Map(questions),
    keys: new Map(keys.map(({ key_id: id, name }) => [id, name])),
  };
}

async function linkTo(api, { chat_id: id, conversation_id: conversation, message_id: message }) {
  const text = await questionOf(api, conversation, message);
  return [id, { href: `#${conversation}/${message}`, text }];
}

/** What memory has saved or cost in these chats. */
const memory = (chats) =>
  chats.length > 0 ? h("p", { class: "fine" }, `Memory, in these chats: ${memoryOf(chats)}`) : "";

/** What chats have cost by agent, by key and by day. */
function spent({ complete, days, keys, profiles }, names) {
  if (days.length === 0) return "";
  const sums = [
    ["By agent", partsOf(profiles, ({ profile }) => agentName(profile), "Earlier chats", days)],
    ["By key", partsOf(keys, ({ key_id: id }) => names.get(id) ?? "A deleted key", "Signed in", days)],
  ];
  return h(
    "section",
    {},
    h("h3", {}, `Chats of the last ${DAYS} days`),
    !complete &&
      h("p", { class: "fine muted" }, "There were too many to read all: earlier days are missing."),
    h(
      "dl",
      { class: "facts" },
      sums.map(([name, parts]) => h("div", {}, h("dt", {}, name), h("dd", {}, parts))),
    ),
    table("By day (UTC)", ["Day", "Chats", "Credits", "Dollars"], days, (day) => [
      day.day,
      count(day.chats),
      count(day.credits),
      dollars(day.dollars),
    ]),
  );
}

/** `Assistant: 20 credits · Graph: 4 credits`, the most first; what no part has is the `rest`. */
function partsOf(parts, nameOf, rest, days) {
  const named = parts.map((part) => [nameOf(part), creditsOf(part.days)]);
  const left = creditsOf(days) - named.reduce((sum, [, credits]) => sum + credits, 0);
  return [...named, [rest, left]]
    .filter(([, credits]) => credits > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([name, credits]) => `${name}: ${plural(credits, "credit")}`)
    .join(" · ");
}

const creditsOf = (days) => days.reduce((sum, { credits }) => sum + credits, 0);

/** `$0.0041, with the full history $0.0037: +11 %, estimated` over these chats. */
function memoryOf(chats) {
  const sum = (name) => chats.reduce((total, { memory }) => total + memory[name], 0);
  const notes = ["estimated", chats.some((chat) => chat.fictional) && "fictional"].filter(Boolean);
  return `${compared(sum("dollars"), sum("full_history_dollars"))}, ${notes.join(", ")}`;
}

function history(lines, questions = new Map()) {
  if (lines.length === 0) return h("p", { class: "muted" }, "No movements yet.");
  return table(
    "Latest movements",
    ["When", "What", "Credits", "Left"],
    lines,
    ({ at, what, credits, left, chatId }) => {
      const question = questions.get(chatId);
      const asked = question && [": ", h("a", { href: question.href, onclick: close }, question.text)];
      return [moment(at), [what, asked], count(credits), count(left)];
    },
  );
}

/** Rows of a time, a text and numbers. */
const table = (name, heads, all, cells) =>
  h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": name },
    h(
      "table",
      { class: "ledger" },
      h("caption", {}, name),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => h("th", { scope: "col", class: KINDS[head] }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        all.map((one) =>
          h(
            "tr",
            {},
            cells(one).map((cell, index) => h("td", { class: KINDS[heads[index]] }, cell)),
          ),
        ),
      ),
    ),
  );

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
