/**
 * The conversations that a conversation was forked from, and its forks, as far as a few requests return them.
 */
import { Refusal } from "./api.js";
import { homeOf, numberOf } from "./branches.js";

const GENERATIONS = 8; // ancestors whose forks are listed, beginning with the conversation itself; 100 forks of each

export class Relatives {
  known = new Map();
  #api;

  constructor(api) {
    this.#api = api;
  }

  /** Adds conversations of the API. */
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

  /** Reads the relatives of a conversation. Throws the API's errors, except for deleted relatives. */
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
      // the forks of a deleted conversation are listed too
      current = ancestor ?? (parent && { conversation_id: parent });
    }
  }

  /**
   * The conversation to fork for a branch that begins with this question: the one that stores the previous
   * question, so all such branches are its forks.
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
