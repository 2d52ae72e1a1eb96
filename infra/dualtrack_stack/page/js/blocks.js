/**
 * Folded passages and footnotes in Markdown, as extensions of marked. Pure.
 *
 * `<details><summary>…</summary>…</details>` is the only markup that an answer may write itself: its text is
 * Markdown like the rest. A footnote is `[^name]` in the line and `[^name]: …` as a block; both show the name,
 * since an answer cannot link to itself.
 */
const LONGEST = 20_000; // characters of a folded passage

const OPENING = /^<details(?: open)?>\s*<summary>([^\n<]{1,300})<\/summary>/i;
const CLOSING = "</details>";
const REFERENCE = /^\[\^([\w-]{1,40})\](?!:)/;
const NOTE = /^ {0,3}\[\^([\w-]{1,40})\]:[ \t]+([^\n]{1,2000})(?:\n|$)/;

export const details = {
  name: "details",
  level: "block",
  start(source) {
    const offset = source.slice(0, LONGEST).search(/\n<details/i);
    return offset === -1 ? undefined : offset + 1;
  },
  tokenizer(source) {
    const near = source.slice(0, LONGEST);
    const opening = OPENING.exec(near);
    const end = opening ? near.toLowerCase().indexOf(CLOSING, opening[0].length) : -1;
    if (end === -1) return undefined;
    const token = { type: "details", raw: source.slice(0, end + CLOSING.length), title: [], tokens: [] };
    this.lexer.inline(opening[1].trim(), token.title);
    this.lexer.blockTokens(near.slice(opening[0].length, end).trim(), token.tokens);
    return token;
  },
  renderer(token) {
    const title = this.parser.parseInline(token.title);
    return `<details><summary>${title}</summary>${this.parser.parse(token.tokens)}</details>\n`;
  },
};

export const note = {
  name: "note",
  level: "block",
  start(source) {
    const offset = source.slice(0, LONGEST).search(/\n {0,3}\[\^/);
    return offset === -1 ? undefined : offset + 1;
  },
  tokenizer(source) {
    const [raw, name, text] = NOTE.exec(source.slice(0, LONGEST)) ?? [];
    if (!raw) return undefined;
    const token = { type: "note", raw, name, tokens: [] };
    this.lexer.inline(text, token.tokens);
    return token;
  },
  renderer(token) {
    return `<p class="footnote"><sup>${token.name}</sup> ${this.parser.parseInline(token.tokens)}</p>\n`;
  },
};

export const reference = {
  name: "reference",
  level: "inline",
  start: (source) => {
    const offset = source.indexOf("[^");
    return offset === -1 ? undefined : offset;
  },
  tokenizer(source) {
    const [raw, name] = REFERENCE.exec(source) ?? [];
    return raw ? { type: "reference", raw, name } : undefined;
  },
  renderer: (token) => `<sup>${token.name}</sup>`,
};
