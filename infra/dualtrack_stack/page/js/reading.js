/** Long texts that somebody is asked to approve: what was not shown was not read. */
import { h } from "./dom.js";
import { count } from "./format.js";
import { lines, marked, visible } from "./visible.js";

const LONGEST = 2000; // characters, of a text that is shown whole
const BEGINNING = 1500;
const END = 400;
const MOST_LINES = 20;
const BEGINNING_LINES = 14;
const END_LINES = 5;

/** The beginning of a text, how many characters are left out behind it, and the end. Pure. */
export function parts(text) {
  const all = text.split("\n");
  const { length } = [...text];
  if (length <= LONGEST && all.length <= MOST_LINES) return [text, 0, ""];
  const begin = [...all.slice(0, BEGINNING_LINES).join("\n")].slice(0, BEGINNING);
  const end = [...all.slice(-END_LINES).join("\n")].slice(-END);
  const left = length - begin.length - end.length;
  return left > 0 ? [begin.join(""), left, end.join("")] : [text, 0, ""];
}

/**
 * Texts as they are; of long ones the beginning and the end, with a button for what is between. `onRead` is called
 * as the last one is opened.
 */
export class Reading {
  #left = 0;
  #onRead;

  constructor(onRead = () => {}) {
    this.#onRead = onRead;
  }

  /** Whether everything is on the page. */
  get isWhole() {
    return this.#left === 0;
  }

  text(text, name) {
    const [begin, left, end] = parts(lines(text));
    if (left === 0) return marked(begin);
    this.#left += 1;
    const place = h("span", { tabindex: "-1" });
    const open = () => {
      place.replaceChildren(...[marked(text)].flat());
      place.focus();
      this.#left -= 1;
      if (this.isWhole) this.#onRead();
    };
    const more = h(
      "button",
      { type: "button", class: "link-button", "aria-label": `Show all of ${visible(name)}`, onclick: open },
      `… ${count(left)} more characters: show all …`,
    );
    place.append(...[marked(begin), "\n", more, "\n", marked(end)].flat());
    return place;
  }
}
