/**
 * Code in a frame: its language, a button that copies it, and colours once `colourCode` is called.
 */
import { h, icon } from "./dom.js";
import { grammarOf } from "./languages.js";

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
    import("./colours.js").then(
      ({ colour }) => {
        for (const code of blocks) colour(code, grammarOf(code.dataset.language));
      },
      () => {},
    );
  return blocks.length;
}
