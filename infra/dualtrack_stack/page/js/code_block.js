/**
 * Code in a frame: its language, a button that copies it, and colours or a diagram once they are asked for.
 */
import { h, icon } from "./dom.js";
import { grammarOf } from "./languages.js";
import { load } from "./patience.js";

/** `label`: the language written above the code. */
export function codeBlock(text, label) {
  const copy = h("button", { type: "button", class: "copy", "data-copy": "code" }, icon("copy"), "Copy");
  const code = h("code", { "data-language": label }, text);
  return h(
    "div",
    { class: "code" },
    h("div", { class: "code-head" }, h("span", {}, label), copy),
    h("pre", { tabindex: "0" }, code),
  );
}

/**
 * Colours an element's code blocks of known languages, up to a limit. Returns their number.
 */
export function colourCode(element, most) {
  const blocks = [...element.querySelectorAll(".code code")]
    .filter((code) => grammarOf(code.dataset.language))
    .slice(0, most);
  // the module is loaded only if needed; if that fails, code stays plain
  if (blocks.length > 0)
    load(() => import("./colours.js")).then(
      ({ colour }) => {
        for (const code of blocks) colour(code, grammarOf(code.dataset.language));
      },
      () => {},
    );
  return blocks.length;
}

const MARGIN = "200px"; // so far ahead of the reader a diagram is drawn

const inSight = new IntersectionObserver(
  (changes) => {
    const near = changes.filter((change) => change.isIntersecting);
    near.sort((one, other) => one.boundingClientRect.top - other.boundingClientRect.top);
    for (const { target } of near) {
      inSight.unobserve(target);
      load(() => import("./diagrams.js")).then(
        ({ drawDiagram }) => drawDiagram(target, (why) => note(target, why)),
        () => note(target, { problem: "unloaded" }),
      );
    }
  },
  { rootMargin: MARGIN },
);

/** Draws an element's Mermaid diagrams, up to a limit, once the reader is near. Returns their number. */
export function drawDiagrams(element, most) {
  const blocks = [...element.querySelectorAll(".code code[data-language=mermaid i]")].map((code) =>
    code.closest(".code"),
  );
  for (const block of blocks.slice(0, most)) inSight.observe(block);
  for (const block of blocks.slice(most)) note(block, { problem: "many" });
  return Math.min(blocks.length, most);
}

/** Why a diagram stays code. */
const WHY = {
  edges: "has more than 300 edges",
  invalid: "has an error",
  large: "is too large a picture",
  long: "is longer than 5,000 characters",
  many: "is not drawn: at most 20 of an answer are",
  slow: "was not drawn within 5 seconds",
  unknown: "is of no kind that is drawn here",
  unloaded: "was not drawn: part of the page did not load",
};

/** Says so. What is unknown is an error; `line`: where it is, or anything. */
function note(block, { problem, line }) {
  const why = Object.hasOwn(WHY, problem) ? WHY[problem] : WHY.invalid;
  const where = why === WHY.invalid && Number.isInteger(line) ? ` in line ${line}` : "";
  block
    .querySelector(".code-head span")
    .append(h("span", { class: "why" }, `. This diagram ${why}${where}.`));
}
