/** What other branches ask at a question: read once for each, a few at a time. */
import { Refusal } from "./api.js";
import { start } from "./format.js";

const LENGTH = 160;
const AT_ONCE = 4;

const read = new Map();
const queue = [];
let running = 0;

/** The question of this number in a conversation, in a line; why there is none if it cannot be read. */
export function askedIn(api, conversationId, number) {
  const key = `${conversationId}/q${number}`;
  if (!read.has(key)) {
    const asked = inTurn(() => api.record(conversationId, `q${number}`)).then(
      ({ content }) => start(content, LENGTH),
      (problem) => {
        read.delete(key);
        return problem instanceof Refusal && problem.status === 404
          ? "Nothing asked here yet"
          : problem.message;
      },
    );
    read.set(key, asked);
  }
  return read.get(key);
}

/** What `act` resolves with, once fewer than so many others run. */
function inTurn(act) {
  return new Promise((resolve, reject) => {
    queue.push(() => act().then(resolve, reject));
    next();
  });
}

function next() {
  while (running < AT_ONCE && queue.length > 0) {
    running += 1;
    queue
      .shift()()
      .finally(() => {
        running -= 1;
        next();
      });
  }
}
