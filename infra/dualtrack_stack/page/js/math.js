/**
 * Draws formulas with KaTeX: as elements, never as markup, with MathML for screen readers.
 *
 * KaTeX sets styles by properties, which the policy allows; a style attribute would be blocked.
 */
import "../lib/katex/katex.js";
import "../lib/purify.js";
import { isDisplay, LONGEST, texOf } from "./math_syntax.js";
import { stylesheet } from "./stylesheet.js";

const { DOMPurify, katex } = globalThis;

const STYLES = new URL("../lib/katex/katex.css", import.meta.url).href;
const LIMITS = { trust: false, strict: "ignore", throwOnError: true, maxExpand: 200, maxSize: 20 };
const MARKUP = {
  IN_PLACE: true,
  USE_PROFILES: { html: true, mathMl: true, svg: true },
  ADD_TAGS: ["semantics", "annotation"],
  ADD_ATTR: ["encoding"],
};

stylesheet(STYLES);

/** Draws the formulas one by one, without blocking the page. Invalid TeX stays as written. */
export async function drawFormulas(elements) {
  for (const element of elements) {
    await new Promise((resolve) => setTimeout(resolve));
    if (element.isConnected) draw(element);
  }
}

function draw(element) {
  const written = element.textContent;
  if (written.length > LONGEST) return;
  try {
    const drawn = elementOf(texOf(written), isDisplay(written));
    DOMPurify.sanitize(drawn, MARKUP);
    element.replaceChildren(drawn);
    element.classList.add("drawn");
    if (isDisplay(written)) element.tabIndex = 0; // it may be wider than the page
  } catch (problem) {
    if (!(problem instanceof katex.ParseError || problem instanceof RangeError)) throw problem;
  }
}

function elementOf(tex, displayMode) {
  const tree = katex.__renderToDomTree(tex, { ...LIMITS, displayMode });
  for (const rest = [tree]; rest.length > 0; ) {
    const node = rest.pop();
    if (node.attributes) delete node.attributes.style;
    for (const child of node.children ?? []) rest.push(child);
  }
  const drawn = tree.toNode();
  for (const svg of drawn.querySelectorAll(".katex-overlay > svg"))
    svg.style.width = svg.getAttribute("width");
  return drawn;
}
