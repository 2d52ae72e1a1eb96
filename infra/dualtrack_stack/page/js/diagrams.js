/**
 * Diagrams by Mermaid, one at a time, each in a frame of its own that is gone once its picture is there.
 *
 * What comes back is shown as an image, which runs no script, loads nothing and has no links. The source stays:
 * on request, as the image's text, and alone where no picture can be made.
 */
import { h } from "./dom.js";
import { start } from "./format.js";
import { stylesheet } from "./stylesheet.js";

const FRAME = new URL("../diagram.html", import.meta.url).href;
const SCRIPTS = ["../lib/mermaid.js", "diagram_frame.js"].map((path) => new URL(path, import.meta.url).href);
const STYLES = new URL("../css/diagram.css", import.meta.url).href;

const LOADING = 60_000; // milliseconds for the frame and its scripts
const PATIENCE = 5000; // milliseconds for a diagram, from then on
const LONGEST = 5000; // characters of a diagram
const LARGEST = 1_000_000; // characters of its picture
const LONGEST_SIDE = 10_000; // pixels
const ALTERNATIVE = 500; // characters of the source as the image's text

let last = stylesheet(STYLES);

/** Draws the diagram of a code block, after those before it; `refuse({problem, line})` is told why there is none. */
export function drawDiagram(block, refuse) {
  last = last.then(async () => {
    if (!block.isConnected) return;
    const source = block.querySelector("code").textContent;
    const picture = source.length > LONGEST ? { problem: "long" } : await pictureOf(source);
    if (picture.problem) refuse(picture);
    else show(block, source, picture);
  });
}

/** `{svg, width, height}` or `{problem, line}`. */
async function pictureOf(source) {
  try {
    return await drawn(source, await Promise.all(SCRIPTS.map(textOf)));
  } catch {
    return { problem: "unloaded" };
  }
}

/** From the browser's cache, but for the first diagram. */
async function textOf(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(address);
  return answer.text();
}

function drawn(source, scripts) {
  const frame = h("iframe", {
    class: "diagram-frame",
    src: FRAME,
    sandbox: "allow-scripts",
    title: "Diagram",
    tabindex: "-1",
    "aria-hidden": "true",
  });
  return new Promise((resolve) => {
    const end = (picture) => {
      clearTimeout(timer);
      frame.remove();
      resolve(picture);
    };
    let timer = setTimeout(end, LOADING, { problem: "unloaded" });
    const begin = () => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }) => {
        if (!data?.begun) return end(checked(data));
        clearTimeout(timer);
        timer = setTimeout(end, PATIENCE, { problem: "slow" });
      };
      frame.contentWindow.postMessage({ scripts, source }, "*", [port2]); // its origin has no name
    };
    frame.addEventListener("load", begin, { once: true });
    document.body.append(frame);
  });
}

function checked(answer) {
  const { svg, width, height, problem, line } = Object(answer);
  if (typeof svg !== "string") return { problem: problem || "invalid", line };
  const isSide = (side) => Number.isFinite(side) && side > 0 && side <= LONGEST_SIDE;
  return svg.length <= LARGEST && isSide(width) && isSide(height)
    ? { svg, width, height }
    : { problem: "large" };
}

function show(block, source, { svg, width, height }) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const code = block.querySelector("pre");
  const image = h("img", {
    src: address,
    alt: `Diagram: ${start(source, ALTERNATIVE)}`,
    width: Math.ceil(width),
    height: Math.ceil(height),
  });
  image.style.setProperty("--natural", `${width}px`);
  // an address that is gone cannot be opened apart, where the picture would be a document
  for (const event of ["load", "error"]) image.addEventListener(event, () => URL.revokeObjectURL(address));
  const toggle = h("button", { type: "button", class: "copy", "aria-expanded": "false" }, "Source");
  toggle.addEventListener("click", () => {
    code.hidden = !code.hidden;
    toggle.setAttribute("aria-expanded", String(!code.hidden));
  });
  code.hidden = true;
  code.before(h("div", { class: "picture", role: "group", "aria-label": "Diagram", tabindex: "0" }, image));
  block.querySelector(".copy").before(toggle);
}
