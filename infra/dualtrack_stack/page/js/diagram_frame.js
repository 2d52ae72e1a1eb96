/**
 * Draws one diagram in the frame `diagram.html`: its text comes with a port, `{svg, width, height}` goes back
 * through it, or `{problem}`.
 *
 * The frame has an origin of its own and reaches no network (web.py), whatever a text makes of Mermaid.
 */
const { mermaid } = globalThis;

const MOST_EDGES = 300;
const TOO_LARGE = /limit exceeded/; // Mermaid's words for too many edges

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

addEventListener("message", answer, { once: true });

async function answer({ data: text, ports: [port] }) {
  try {
    const { svg } = await mermaid.render("diagram", text);
    document.body.innerHTML = svg;
    port.postMessage(pictureOf(document.querySelector("svg")));
  } catch (error) {
    port.postMessage({ problem: TOO_LARGE.test(error?.message) ? "too large" : "invalid" });
  }
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
