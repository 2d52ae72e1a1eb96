/** A tool's result in a line. */
import { start } from "./format.js";

const MOST = 220;
const TITLE = /^### (.+)$/gm;

/**
 * The titles of the documents in a result, else its beginning. A search result begins with instructions to
 * the model, which are left out. Pure.
 */
export function resultPreview(text) {
  const from = text.search(/^<document /m);
  const titles = from < 0 ? [] : [...text.slice(from).matchAll(TITLE)].map((match) => match[1]);
  return start(titles.length > 0 ? titles.join(" · ") : text, MOST);
}
