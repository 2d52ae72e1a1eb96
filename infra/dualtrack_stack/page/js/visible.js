/**
 * What a reader is asked to approve, as it is: no character hides, moves or turns what stands beside it. The same
 * rule as the terminal's (dualtrack/visible.py). Letters that look alike stay, as do combining marks.
 */
import { h } from "./dom.js";

export const HIDDEN =
  "\\u{0000}-\\u{0008}\\u{000b}-\\u{001f}\\u{007f}-\\u{009f}\\u{00ad}\\u{034f}\\u{061c}\\u{115f}" +
  "\\u{1160}\\u{17b4}\\u{17b5}\\u{180b}-\\u{180f}\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}" +
  "\\u{2060}-\\u{206f}\\u{2800}\\u{3164}\\u{d800}-\\u{dfff}\\u{fe00}-\\u{fe0f}\\u{feff}\\u{ffa0}" +
  "\\u{fff0}-\\u{fffb}\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" +
  "\\u{e0000}-\\u{e0fff}";
const SIGN = new RegExp(`[${HIDDEN}]`, "gu");
const BY_SIGN = new RegExp(`([${HIDDEN}])`, "u");

const number = (sign) => {
  const code = sign.codePointAt(0);
  return code <= 0xffff
    ? `\\u${code.toString(16).padStart(4, "0")}`
    : `\\U${code.toString(16).padStart(8, "0")}`;
};

export const lines = (text) => String(text).replaceAll("\r\n", "\n");

/** The text with each hidden character as its number: `\u202e`, `\U000e0041`. */
export const visible = (text) => lines(text).replace(SIGN, number);

/** The same as elements, in which the numbers are marked: nobody can write one that looks like them. */
export const marked = (text) =>
  lines(text)
    .split(BY_SIGN)
    .map((part, index) =>
      index % 2
        ? h("span", { class: "hidden-sign", title: "A character that cannot be seen" }, number(part))
        : part,
    );

/** JSON in which each hidden character is JSON's own escape, so that it can be edited and sent. */
export const writtenOut = (json) =>
  json.replace(SIGN, (sign) =>
    [...Array(sign.length).keys()]
      .map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );

export const isWrittenOut = (text) => text.search(SIGN) === -1;
