/** The ledger, newest first: a line for each chat, and one for each other movement. */

const HELD = "Held for a chat that runs";

const KINDS = {
  hold: HELD,
  settle: "Charged",
  release: "Not charged",
  expire: "Expired",
  grant: "Granted",
  plan: "Plan",
};

/**
 * `[{at, what, credits, left, chatId}]` of the API's entries. A chat that has ended has its final charge, a
 * running one the credits held for it. Pure.
 */
export function movementsOf(entries) {
  const lines = [];
  const chats = new Map();
  for (const entry of entries) {
    const known = chats.get(entry.chat_id);
    if (known) {
      if (known.what === HELD) known.credits += entry.amount;
      continue;
    }
    const line = lineOf(entry);
    lines.push(line);
    if (line.chatId) chats.set(line.chatId, line);
  }
  return lines;
}

const lineOf = ({ at, kind, amount, reason, chat_id: chatId = "", available_after: left }) => ({
  at,
  what: [KINDS[kind] ?? kind, reason].filter(Boolean).join(" "),
  credits: kind === "release" ? 0 : amount,
  left,
  chatId,
});
