/**
 * Untrusted Markdown as harmless elements: marked parses it, DOMPurify lets through a short list of tags.
 *
 * Nothing that loads by itself comes through (an image's address can carry data away): images become
 * links. `MarkdownView` redraws only the blocks that changed, so text can stream into it.
 */
import { Marked } from "../lib/marked.js";
import "../lib/purify.js";
import { h, icon } from "./dom.js";

const { DOMPurify } = globalThis;

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h2", "h3", "h4", "h5", "h6", "hr", "i", "b",
    "kbd", "li", "mark", "ol", "p", "pre", "s", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul",
  ],
  ALLOWED_ATTR: ["href", "title", "start", "align", "class", "open"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const FIRST_LEVEL = 3; // h1 is the page's, h2 the exchange's

const headings = { shift: 0 };

const marked = new Marked({
  gfm: true,
  // markup in an answer is text to be read, but for the line breaks that models put into tables
  tokenizer: {
    html: () => undefined,
    tag: (source) => (/^<br ?\/?>/i.test(source) ? false : undefined),
  },
  renderer: {
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
      return checked ? "☑ " : "☐ ";
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
  for (const element of fragment.querySelectorAll("[class]")) {
    const language = [...element.classList].find((name) => name.startsWith("language-"));
    element.removeAttribute("class");
    if (language && element.tagName === "CODE") element.dataset.language = language.slice(9);
  }
  for (const table of fragment.querySelectorAll("table")) wrap(table, h("div", { class: "table-scroll", tabindex: "0" }));
  for (const block of fragment.querySelectorAll("pre")) dress(block);
  return fragment;
}

function wrap(element, around) {
  element.replaceWith(around);
  around.append(element);
}

function dress(block) {
  block.tabIndex = 0;
  const language = block.querySelector("code")?.dataset.language ?? "";
  const frame = h("div", { class: "code" });
  wrap(block, frame);
  const copy = h("button", { type: "button", class: "copy", "data-copy": "code" }, icon("copy"), "Copy");
  frame.prepend(h("div", { class: "code-head" }, h("span", {}, language), copy));
}

export class MarkdownView {
  #element;
  #blocks = [];

  constructor(element) {
    this.#element = element;
  }

  update(text) {
    const tokens = marked.lexer(text);
    const depths = tokens.filter((token) => token.type === "heading").map((token) => token.depth);
    headings.shift = FIRST_LEVEL - Math.min(...depths, 6);
    const links = Object.keys(tokens.links).length;
    const wanted = tokens
      .filter((token) => token.type !== "space")
      .map((token) => ({ token, key: `${headings.shift} ${links} ${token.raw}` }));
    let same = 0;
    while (same < wanted.length && this.#blocks[same]?.key === wanted[same].key) same += 1;
    for (const gone of this.#blocks.splice(same)) gone.nodes.forEach((node) => node.remove());
    for (const { token, key } of wanted.slice(same)) {
      const fragment = harmless(marked.parser([token]));
      const nodes = [...fragment.childNodes];
      this.#element.append(fragment);
      this.#blocks.push({ key, nodes });
    }
  }
}
