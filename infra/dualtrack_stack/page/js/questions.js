/** What is asked elsewhere: each question is read once, a few at a time. */
import { Refusal } from "./api.js";
import { start } from "./format.js";

const LENGTH = 160;
const AT_ONCE = 4;

const read = new Map();
const queue = [];
let running = 0;

/** The question with this id in a conversation, in a line. */
export function questionOf(api, conversationId, messageId) {
  const key = `${conversationId}/${messageId}`;
  if (!read.has(key)) {
    const question = inTurn(() => api.record(conversationId, messageId)).then(({ content }) =>
      start(content, LENGTH),
    );
    question.catch(() => read.delete(key));
    read.set(key, question);
  }
  return read.get(key);
}

/** The question of this number in a branch, in a line; why there is none if it cannot be read. */
export const askedIn = (api, conversationId, number) =>
  questionOf(api, conversationId, `q${number}`).catch((problem) =>
    problem instanceof Refusal && problem.status === 404 ? "Nothing asked here yet" : problem.message,
  );

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
