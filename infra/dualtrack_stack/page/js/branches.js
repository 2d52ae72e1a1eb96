/**
 * Branches: the questions at which forks part. Pure.
 *
 *     P:  q1 q2 q3 q4        F = fork of P before q3: its own questions begin with q3, and the two part there
 *     F:        q3 q4
 *
 * `known` maps ids to conversations as the API lists them, each fork with `before`, the number of the first
 * question of its own; 0 if it is no fork.
 */
const DEEPEST = 64; // levels of forks that are followed

export const numberOf = (messageId) => Number(messageId.slice(1));

/** The conversation that stores a question; an unknown conversation ends the search. */
export function homeOf(known, conversationId, number) {
  let home = conversationId;
  for (let steps = 0; steps < DEEPEST; steps += 1) {
    const { forked_from: parent, before } = known.get(home) ?? {};
    if (!parent || !before || number >= before) return home;
    home = parent;
  }
  return home;
}

/**
 * Where the branches of a conversation part: `Map(number → {at, ids})`, oldest first; `at` is the index of
 * the conversation's own branch. An id is that of a conversation that shows the branch.
 */
export function branchesOf(known, conversationId) {
  const begun = new Map();
  for (const conversation of known.values()) {
    if (conversation.forked_from && conversation.before)
      begun.set(conversation.before, [...(begun.get(conversation.before) ?? []), conversation]);
  }
  const branches = new Map();
  for (const [number, forks] of begun) {
    const origin = homeOf(known, conversationId, number - 1);
    const isSibling = (fork) => homeOf(known, fork.conversation_id, number - 1) === origin;
    const begins = (first, second) => (first.created_at < second.created_at ? -1 : 1);
    const ids = forks
      .filter(isSibling)
      .sort(begins)
      .map((fork) => fork.conversation_id);
    if (ids.length === 0) continue;
    const ways = [origin, ...ids]
      .map((home) => ({ home, open: shownBy(known, conversationId, home, number) }))
      .filter((way) => way.open);
    const at = ways.findIndex((way) => way.home === homeOf(known, conversationId, number));
    if (at >= 0 && ways.length > 1) branches.set(number, { at, ids: ways.map((way) => way.open) });
  }
  return branches;
}

/**
 * A conversation that shows the question of this number in `home`: the open one, `home`, or a fork of it.
 */
function shownBy(known, open, home, number) {
  if (homeOf(known, open, number) === home) return open;
  if (known.has(home)) return home;
  return [...known.keys()].find((id) => homeOf(known, id, number) === home);
}

/**
 * The listed conversations, each with its forks: `[{root, branches}]`, in the list's order.
 */
export function families(listed) {
  const known = new Map(listed.map((conversation) => [conversation.conversation_id, conversation]));
  const byRoot = new Map();
  for (const conversation of listed) {
    const top = topOf(known, conversation);
    const family = byRoot.get(top) ?? { root: top, branches: [] };
    byRoot.set(top, family);
    if (conversation !== top) family.branches.push(conversation);
  }
  return [...byRoot.values()];
}

function topOf(known, conversation) {
  let top = conversation;
  for (let steps = 0; steps < DEEPEST && known.has(top.forked_from); steps += 1)
    top = known.get(top.forked_from);
  return top;
}
