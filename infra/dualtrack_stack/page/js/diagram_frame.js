/**
 * Draws one diagram in the frame `diagram.html`, which runs this text behind Mermaid's. Through a port go
 * `{begun: true}`, then `{svg, width, height}` or `{problem, line}` (`WHY` of diagrams.js, the source's line or null).
 *
 * The frame has an origin of its own and reaches no network (web.py), whatever a text makes of Mermaid.
 */
const { mermaid } = globalThis;

const MOST_EDGES = 300;
const TOO_MANY_EDGES = /edge limit exceeded/i; // Mermaid's words
const NO_KIND = "UnknownDiagramError";

/** What Mermaid takes out before it counts lines: front matter, directives, and lines of comment. */
const NOT_COUNTED = [
  /^\s*---[^\S\n]*\n[\s\S]*?\n[^\S\n]*---[^\S\n]*(?:\n|$)/,
  /%%\{[\s\S]*?\}%%/g,
  /^[^\S\n]*%%.*/gm,
];

// the page's light ones; a style sheet turns the picture dark
const COLOURS = {
  primaryColor: "#e2efec",
  primaryBorderColor: "#1c5f5b",
  primaryTextColor: "#201f1c",
  secondaryColor: "#f1efe9",
  tertiaryColor: "#faf9f6",
  lineColor: "#65615a",
  noteBkgColor: "#f1efe9",
  noteBorderColor: "#8b8272",
  fontSize: "14px",
  pie1: "#9ccac3",
  pie2: "#e4cf9c",
  pie3: "#c3b6dc",
  pie4: "#a8c8e8",
  pieStrokeWidth: "1px",
  pieOuterStrokeWidth: "1px",
  xyChart: { backgroundColor: "#ffffff", plotColorPalette: "#5f9e96,#c2a14d,#8f7cba,#5b8fbf" },
};

mermaid.initialize({
  startOnLoad: false,
  securityLevel: "strict",
  htmlLabels: false,
  suppressErrorRendering: true,
  maxEdges: MOST_EDGES,
  look: "classic",
  theme: "base",
  themeVariables: COLOURS,
  fontFamily: "system-ui, sans-serif",
  secure: ["htmlLabels", "fontFamily", "themeCSS"], // besides Mermaid's own: no text may set them
});

globalThis.answer = async (source, port) => {
  port.postMessage({ begun: true });
  try {
    const { svg } = await mermaid.render("diagram", source);
    document.body.innerHTML = svg;
    port.postMessage(pictureOf(document.querySelector("svg")));
  } catch (error) {
    port.postMessage(
      TOO_MANY_EDGES.test(error?.message)
        ? { problem: "edges" }
        : error?.name === NO_KIND
          ? { problem: "unknown" }
          : { problem: "invalid", line: await faultyLine(source) },
    );
  }
};

/** The line of the source, from 1, at which it cannot be read; null if Mermaid names none. */
async function faultyLine(source) {
  const blank = (part) => part.replace(/[^\n]+/g, "");
  const counted = NOT_COUNTED.reduce(
    (text, pattern) => text.replace(pattern, blank),
    source.replace(/\r\n?/g, "\n"),
  );
  const body = counted.trimStart();
  const before = counted.slice(0, counted.length - body.length).split("\n").length - 1;
  if (body.startsWith("sankey")) return null; // it leaves out blank lines first
  const line = await mermaid.parse(body).then(() => null, lineOf);
  return Number.isInteger(line) ? Math.min(before + line, source.trimEnd().split("\n").length) : null;
}

/** By either of Mermaid's kinds of parsers. What is unexpected may be a line's end. */
function lineOf({ hash, result }) {
  if (hash) return hash.line + 1 - (String(hash.text).split("\n").length - 1);
  const [unread] = result?.lexerErrors ?? [];
  const [unexpected] = result?.parserErrors ?? [];
  return unread?.line ?? (unexpected?.token.startLine || unexpected?.previousToken?.endLine);
}

/** As XML, and as large as it is by itself: an image has no page that gives it a width. */
function pictureOf(svg) {
  for (const label of svg.querySelectorAll(".statediagram-state > .label")) centre(label);
  const { width, height } = svg.viewBox.baseVal;
  svg.removeAttribute("style");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  return { svg: new XMLSerializer().serializeToString(svg), width, height };
}

/** Mermaid lets a state's label begin at the left of a room that it measures for HTML. */
function centre(label) {
  label.setAttribute(
    "transform",
    label.getAttribute("transform").replace(/^translate\([^,]*/, "translate(0"),
  );
  label.querySelector("text")?.setAttribute("text-anchor", "middle");
}
