/**
 * What this browser remembers of conversations, ids only, no text: which chat answered which query.
 *
 * With it a reload finds the chat that still runs, and past answers their sources.
 */
const CHATS = "dualtrack.chats"; // {conversation: {q1: chat id}}
const CONVERSATIONS = 100;

function load() {
  try {
    return JSON.parse(localStorage.getItem(CHATS)) ?? {};
  } catch {
    return {}; // no storage, or somebody else's content
  }
}

function save(all) {
  try {
    localStorage.setItem(
      CHATS,
      JSON.stringify(Object.fromEntries(Object.entries(all).slice(-CONVERSATIONS))),
    );
  } catch {
    // without storage the hash of the address still knows the running chat
  }
}

export const chatsOf = (conversationId) => load()[conversationId] ?? {};

export function remember(conversationId, messageId, chatId) {
  const { [conversationId]: known = {}, ...others } = load();
  save({ ...others, [conversationId]: { ...known, [messageId]: chatId } });
}

export function forget(conversationId) {
  const { [conversationId]: _gone, ...others } = load();
  save(others);
}
