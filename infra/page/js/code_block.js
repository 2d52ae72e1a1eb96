/**
 * Code in a frame: its language, a button that copies it, and its colours once `colourCode` is asked for
 * them.
 */
import { h, icon } from "./dom.js";
import { grammarOf } from "./languages.js";

/** `label`: what stands above the code in the text. */
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
 * Colours the code blocks within an element whose language is known, at most so many. Returns how many there
 * were.
 */
export function colourCode(element, most) {
  const blocks = [...element.querySelectorAll(".code code")]
    .filter((code) => grammarOf(code.dataset.language))
    .slice(0, most);
  // where there is nothing to colour, nothing is loaded; offline it stays as it is
  if (blocks.length > 0)
    import("./colours.js").then(
      ({ colour }) => {
        for (const code of blocks) colour(code, grammarOf(code.dataset.language));
      },
      () => {},
    );
  return blocks.length;
}
