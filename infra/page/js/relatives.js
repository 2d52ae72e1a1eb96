/**
 * The conversations that one was forked from and that were forked from it, as far as they can be read in a
 * few requests.
 */
import { Refusal } from "./api.js";
import { homeOf, numberOf } from "./branches.js";

const GENERATIONS = 8; // conversations whose forks are listed: this one, its parent, and so on; 100 forks of each

export class Relatives {
  known = new Map();
  #api;

  constructor(api) {
    this.#api = api;
  }

  /** Learns conversations as the API shows them. */
  learn(conversations) {
    for (const { records: _records, ...conversation } of conversations)
      this.known.set(conversation.conversation_id, {
        ...conversation,
        before: conversation.forked_before ? numberOf(conversation.forked_before) : 0,
      });
  }

  forget(conversationId) {
    this.known.delete(conversationId);
  }

  /** Reads the relatives of a conversation. Throws what the API says, except that one of them is gone. */
  async load(conversation, signal) {
    this.learn([conversation]);
    let current = conversation;
    for (let generation = 0; current && generation < GENERATIONS; generation += 1) {
      const { forked_from: parent } = current;
      const [forks, ancestor] = await Promise.all([
        orGone(this.#api.forks(current.conversation_id, signal)),
        parent && (this.known.get(parent) ?? orGone(this.#api.conversationHead(parent, signal))),
      ]);
      this.learn(forks?.conversations ?? []);
      if (ancestor) this.learn([ancestor]);
      else if (parent) this.forget(parent);
      // the forks of one that is gone are listed all the same
      current = ancestor ?? (parent && { conversation_id: parent });
    }
  }

  /**
   * The conversation to fork for a branch that begins with this question: the one that stores the question
   * before, so that all such branches are its forks.
   */
  toFork(conversationId, number) {
    const home = homeOf(this.known, conversationId, number - 1);
    return this.known.has(home) ? home : conversationId;
  }
}

async function orGone(reading) {
  try {
    return await reading;
  } catch (problem) {
    if (problem instanceof Refusal && problem.status === 404) return null;
    throw problem;
  }
}
