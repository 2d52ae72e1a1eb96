/**
 * What this browser remembers of conversations, ids only, no text: which chat answered which query, and before
 * which question a fork was made.
 *
 * With it a reload finds the chat that still runs, past answers their sources, and branches the place where they part.
 */
const CHATS = "dualtrack.chats"; // {conversation: {q1: chat id}}
const FORKS = "dualtrack.forks"; // {fork: number}
const CONVERSATIONS = 100;
const MOST_FORKS = 500;

function load(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {}; // no storage, or somebody else's content
  }
}

function save(key, all, most) {
  try {
    localStorage.setItem(key, JSON.stringify(Object.fromEntries(Object.entries(all).slice(-most))));
  } catch {
    // without storage the hash of the address still knows the running chat
  }
}

export const chatsOf = (conversationId) => load(CHATS)[conversationId] ?? {};

export function remember(conversationId, messageId, chatId) {
  const { [conversationId]: known = {}, ...others } = load(CHATS);
  save(CHATS, { ...others, [conversationId]: { ...known, [messageId]: chatId } }, CONVERSATIONS);
}

/** The number of the first question that a fork does not share; 0 if this browser does not know. */
export const forkedBefore = (conversationId) => load(FORKS)[conversationId] ?? 0;

export function rememberFork(conversationId, number) {
  const { [conversationId]: known, ...others } = load(FORKS);
  if (known !== number) save(FORKS, { ...others, [conversationId]: number }, MOST_FORKS);
}

export function forget(conversationId) {
  for (const [key, most] of [[CHATS, CONVERSATIONS], [FORKS, MOST_FORKS]]) {
    const { [conversationId]: _gone, ...others } = load(key);
    save(key, others, most);
  }
}
