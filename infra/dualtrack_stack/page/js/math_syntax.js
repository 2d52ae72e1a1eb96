/**
 * Formulas in Markdown, as extensions of marked: `$$…$$` and `\[…\]` as blocks, `$…$` and `\(…\)` in the
 * line.
 *
 * A formula's element has its source, delimiters included, until math.js draws it. Pure.
 */
export const LONGEST = 2000; // characters of a formula

const PAIRS = { $$: "$$", "\\[": "\\]", "\\(": "\\)" };
const PROSE = /[A-Za-z]{3,}\s+[A-Za-z]{2,}|^[\d.,]+[A-Za-z%]*\s+[A-Za-z]{2,}/; // words, without any sign of TeX

/**
 * The formula at the start of a text, delimiters included; empty if there is none. `before`: the preceding
 * character.
 */
function formula(source, before) {
  const opening = source.slice(0, 2);
  const closing = PAIRS[opening];
  if (closing) return paired(source.slice(0, LONGEST), opening, closing);
  return source[0] === "$" && !/[\w$\\]/.test(before) ? dollars(source.slice(0, LONGEST)) : "";
}

function paired(source, opening, closing) {
  const end = source.indexOf(closing, 2);
  const tex = source.slice(2, end);
  return end === -1 || !tex.trim() || /\n[ \t]*\n/.test(tex) ? "" : opening + tex + closing;
}

/**
 * A single dollar sign may be money: a formula has no blanks at its ends, no letter or digit after it, and no
 * prose.
 */
function dollars(source) {
  let end = 1;
  while (end < source.length && source[end] !== "$" && source[end] !== "\n")
    end += source[end] === "\\" ? 2 : 1;
  const tex = source.slice(1, end);
  if (source[end] !== "$" || !tex || tex !== tex.trim() || /[\w$]/.test(source[end + 1] ?? "")) return "";
  return PROSE.test(tex) && !tex.includes("\\") ? "" : `$${tex}$`;
}

/** The formula without its delimiters. */
export function texOf(written) {
  const bare = written.trim();
  const sign = bare.slice(0, 2) in PAIRS ? 2 : 1;
  return bare.slice(sign, -sign).trim();
}

const standsAlone = (written) => /^\s*(?:\$\$|\\\[)/.test(written);

const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const element = (tag, written) => `<${tag} class="math">${escaped(written)}</${tag}>`;

export const block = {
  name: "mathBlock",
  level: "block",
  /** The offset of the next block formula, searched only within a formula's length limit. */
  start(source) {
    const offset = source.slice(0, LONGEST).search(/\n {0,3}(?:\$\$|\\\[)/);
    return offset === -1 ? undefined : offset + 1;
  },
  tokenizer(source) {
    const [indent] = /^ {0,3}/.exec(source);
    if (!standsAlone(source.slice(indent.length, indent.length + 2))) return undefined;
    const written = formula(source.slice(indent.length), "");
    const after = written && /^[ \t]*(?:\n+|$)/.exec(source.slice(indent.length + written.length));
    return after ? { type: "mathBlock", raw: indent + written + after[0], written } : undefined;
  },
  renderer: ({ written }) => element("div", written),
};

export const inline = {
  name: "math",
  level: "inline",
  tokenizer(source, tokens) {
    if (source[0] !== "$" && source[0] !== "\\") return undefined;
    const written = formula(source, tokens.at(-1)?.raw.at(-1) ?? "");
    return written ? { type: "math", raw: written, written } : undefined;
  },
  renderer: ({ written }) => element("span", written),
};

/** ```` ```math ```` of GitHub. */
export const fenced = (tex) => element("div", `$$${tex}$$`);

/** Whether a formula is a block. */
export const isDisplay = standsAlone;
