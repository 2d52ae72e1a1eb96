/**
 * Untrusted Markdown as safe elements: marked parses it, DOMPurify keeps a short list of tags.
 *
 * Nothing is loaded automatically (an image's address can carry data away): images become links.
 * `MarkdownView` redraws only the blocks that changed, so text can stream into it; a complete block gets its
 * colours, formulas and diagrams, whose modules are loaded only then.
 */
import { Marked, Tokenizer } from "../lib/marked.js";
import "../lib/purify.js";
import * as blocks from "./blocks.js";
import * as cjk from "./cjk.js";
import { codeBlock, colourCode, drawDiagrams } from "./code_block.js";
import { h } from "./dom.js";
import * as math from "./math_syntax.js";
import { load } from "./patience.js";

const { DOMPurify } = globalThis;

const ALLOWED = {
  ALLOWED_TAGS: [
    "a",
    "blockquote",
    "br",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "b",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "start", "align", "class", "open"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: ["align", "open", "start"], // no URLs
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const FIRST_LEVEL = 3; // h1 is the page's, h2 the exchange's

// text over the first two limits is shown as written
const LONGEST = 60_000; // characters
const MOST_BLOCKS = 3000;
const MOST_SIGNS = 1000; // of emphasis in a passage: marked's time grows with their square
const MOST_CODE = 100; // coloured blocks of an answer
const MOST_DIAGRAMS = 20;
const MOST_TEX = 20_000; // characters of an answer's drawn formulas

const headings = { shift: 0 };

/** Whether a passage has too many signs of emphasis. Called many times in a row with the same passage. */
const crowded = remembered((passage) => passage.replace(/[^*_~]+/g, "").length > MOST_SIGNS);

function remembered(answer) {
  let [of, known] = ["", answer("")];
  return (passage) => {
    if (passage !== of) [of, known] = [passage, answer(passage)];
    return known;
  };
}

/** marked's rule for plain text, which also ends before a dollar sign: a formula may begin there. */
const toDollar = remembered((rule) => new RegExp(rule.replace("[\\\\<!", "[$\\\\<!")));

const passageOf = remembered(cjk.passage);

/** marked's rule for these signs, beside CJK text. */
function signs(rule, source, passage, before) {
  return Tokenizer.prototype[rule].call(this, source, passageOf(passage), cjk.before(source, before));
}

const marked = new Marked({
  gfm: true,
  extensions: [math.block, math.inline, blocks.details, blocks.note, blocks.reference],
  // other markup in an answer is shown as text, except the line breaks that models put into tables
  tokenizer: {
    html: () => undefined,
    tag: (source) => (/^<br ?\/?>/i.test(source) ? false : undefined),
    emStrong(source, passage, before) {
      if (crowded(passage)) return undefined;
      return source[0] === "*" ? signs.call(this, "emStrong", source, passage, before) : false;
    },
    del(source, passage, before) {
      return crowded(passage) ? undefined : signs.call(this, "del", source, passage, before);
    },
    url(source) {
      const link = Tokenizer.prototype.url.call(this, source);
      return link && cjk.runsOn(link.raw) ? Tokenizer.prototype.url.call(this, cjk.address(link.raw)) : link;
    },
    inlineText(source) {
      const text = toDollar(this.rules.inline.text.source).exec(source);
      return text ? Tokenizer.prototype.inlineText.call(this, text[0]) : false;
    },
  },
  renderer: {
    code: ({ text, lang }) => (lang === "math" ? math.fenced(text) : false),
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + headings.shift);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    image({ href, text }) {
      const safe = document.createElement("a");
      safe.href = href;
      safe.textContent = text ? `Image: ${text}` : "Image";
      return safe.outerHTML;
    },
    checkbox({ checked }) {
      return `<span class="task">${checked ? "☑" : "☐"}</span> `;
    },
  },
});

function harmless(markup) {
  const fragment = DOMPurify.sanitize(markup, ALLOWED);
  for (const link of fragment.querySelectorAll("a")) {
    if (link.hasAttribute("href")) {
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
    }
  }
  for (const table of fragment.querySelectorAll("table"))
    wrap(table, h("div", { class: "table-scroll", role: "group", "aria-label": "Table", tabindex: "0" }));
  for (const cell of fragment.querySelectorAll("td, th"))
    if (isOneThing(cell.textContent)) cell.classList.add("unbroken");
  for (const block of fragment.querySelectorAll("pre"))
    block.replaceWith(codeBlock(block.textContent, languageOf(block)));
  return fragment;
}

/** Whether a cell is an address, a name, a date or a number, which a line break would spoil. */
const isOneThing = (text) =>
  text.length <= 80 && (!/\s/.test(text) || (text.length <= 20 && /\d/.test(text)));

function wrap(element, around) {
  element.replaceWith(around);
  around.append(element);
}

/** The language as marked writes it: the first word above the code. */
function languageOf(block) {
  const names = [...(block.querySelector("code")?.classList ?? [])];
  return names.find((name) => name.startsWith("language-"))?.slice(9) ?? "";
}

/** The blocks of a text, `{key, draw}`: blocks with the same key are drawn the same. */
function blocksOf(text) {
  const tokens = marked.lexer(text);
  if (tokens.length > MOST_BLOCKS) return asWritten(text);
  const depths = tokens.filter((token) => token.type === "heading").map((token) => token.depth);
  const shift = FIRST_LEVEL - depths.reduce((least, depth) => Math.min(least, depth), 6);
  const links = Object.keys(tokens.links).length;
  const draw = (token) => () => {
    headings.shift = shift;
    return harmless(marked.parser([token]));
  };
  return tokens
    .filter((token) => token.type !== "space")
    .map((token) => ({ key: `${shift} ${links} ${token.raw}`, draw: draw(token) }));
}

const asWritten = (text) => [{ key: `as written ${text}`, draw: () => h("p", { class: "plain" }, text) }];

export class MarkdownView {
  #element;
  #blocks = []; // {key, nodes, ended}
  #code = MOST_CODE;
  #diagrams = MOST_DIAGRAMS;
  #tex = MOST_TEX;

  constructor(element) {
    this.#element = element;
  }

  /** `whole`: the text is complete, and so is its last block. */
  update(text, whole = true) {
    try {
      this.#show(text.length > LONGEST ? asWritten(text) : blocksOf(text));
    } catch (problem) {
      if (!(problem instanceof RangeError)) throw problem; // nested deeper than the stack
      this.#show(asWritten(text));
    }
    this.#blocks.forEach((block, index) => {
      if (!block.ended && (whole || index < this.#blocks.length - 1)) this.#end(block);
    });
  }

  #show(wanted) {
    let same = 0;
    while (same < wanted.length && this.#blocks[same]?.key === wanted[same].key) same += 1;
    for (const node of this.#blocks.splice(same).flatMap((gone) => gone.nodes)) node.remove();
    for (const { key, draw } of wanted.slice(same)) {
      const drawn = draw();
      const nodes = drawn instanceof DocumentFragment ? [...drawn.childNodes] : [drawn];
      this.#element.append(drawn);
      this.#blocks.push({ key, nodes, ended: false });
    }
  }

  #end(block) {
    block.ended = true;
    for (const node of block.nodes) if (node instanceof Element) this.#finish(node);
  }

  #finish(element) {
    this.#code -= colourCode(element, this.#code);
    this.#diagrams -= drawDiagrams(element, this.#diagrams);
    const formulas = [element, ...element.querySelectorAll(".math")].filter((candidate) => {
      if (!candidate.matches(".math") || candidate.textContent.length > this.#tex) return false;
      this.#tex -= candidate.textContent.length;
      return true;
    });
    if (formulas.length > 0)
      load(() => import("./math.js")).then(
        ({ drawFormulas }) => drawFormulas(formulas),
        () => {},
      );
  }
}
