/**
 * Emphasis and bare links beside Chinese, Japanese and Korean, which have no blanks between words. By CommonMark's
 * rules `**「強調」**です` is not drawn, since a bracket is no letter; here CJK punctuation counts as letters, and other
 * punctuation may stand beside a CJK letter (the rules of markdown-cjk-friendly). The terminal has the same: cjk.py.
 */
export const PUNCTUATION =
  "\\u3001-\\u3003\\u3008-\\u3011\\u3014-\\u301f\\u3030\\u303d\\u30a0\\u30fb\\ufe30-\\ufe4f" +
  "\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65";
export const LETTERS =
  "\\u1100-\\u11ff\\u2e80-\\u2fdf\\u3005-\\u3007\\u3021-\\u302f\\u3031-\\u303c\\u3040-\\u309f" +
  "\\u30a1-\\u30fa\\u30fc-\\u318f\\u31a0-\\u31ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\ua960-\\ua97f" +
  "\\uac00-\\ud7ff\\uf900-\\ufaff\\uff66-\\uffdc\\u{20000}-\\u{3ffff}";

const SIGN = new RegExp(`[${PUNCTUATION}]`, "gu");
const IS_LETTER = new RegExp(`[${LETTERS}\\udc00-\\udfff]`, "u"); // marked hands over half of a rare one
const NEXT = new RegExp(`^[*~]+(?:([${PUNCTUATION}])|[^\\s\\p{L}\\p{N}])`, "u");
const BEHIND = new RegExp(`([^\\s\\p{L}\\p{N}${PUNCTUATION}*~][*~]+)([${LETTERS}])`, "gu");

/** The passage in which marked looks for the end of emphasis, as long as before. */
export const passage = (text) =>
  text.replace(BEHIND, (_, run, letter) => run + "!".repeat(letter.length)).replace(SIGN, "a");

/** The character before a run of signs, as marked shall see it: none where the run may begin emphasis. */
export function before(source, character) {
  const next = NEXT.exec(source);
  return next && (next[1] || IS_LETTER.test(character)) ? "" : character;
}

/** A bare address without the sentence that follows it. */
export const address = (text) => text.slice(0, text.search(SIGN));

export const runsOn = (text) => text.search(SIGN) > 0;
