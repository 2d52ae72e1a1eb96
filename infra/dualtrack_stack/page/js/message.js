/** Limits of a message (CONTRACT 4). Pure. */
import { count } from "./format.js";

export const LONGEST = 32_000; // characters as the server counts them: code points

const length = (text) => (text.length <= LONGEST ? text.length : [...text].length);

/** How many characters too long a message is; 0 if it is not. */
export const excess = (text) => Math.max(0, length(text.trim()) - LONGEST);

export const tooLong = (text) =>
  `A message has at most ${count(LONGEST)} characters; this one is ${count(excess(text))} too long.`;
