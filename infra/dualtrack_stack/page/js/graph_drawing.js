/**
 * A node and its neighbours as a drawing: the node on the left, a branch for each neighbour, grouped by
 * relationship.
 *
 * Plain SVG, as wide as its container. A neighbour is a button that asks about that node. The table below the
 * drawing has the same in text.
 */
import { h } from "./dom.js";
import { count, plural, start } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = 24; // neighbours drawn; the table has the others
const ROW = 30;
const HEAD = 24;
const WIDE = 640;
const NARROW = 330;
const LINES = 4; // of the node's own name

/** The layout: `{height, groups: [{type, out, y, nodes: [{name, label, y}]}], hidden}`. Pure. */
export function layout({ groups, total }) {
  const all = groups.reduce((sum, group) => sum + group.nodes.length, 0);
  const each = all <= DRAWN ? DRAWN : Math.max(3, Math.floor(DRAWN / groups.length));
  let y = 4;
  let drawn = 0;
  const placed = [];
  for (const { type, out, nodes } of groups) {
    const kept = nodes.slice(0, Math.min(each, DRAWN - drawn));
    if (kept.length === 0) break;
    const head = y + HEAD;
    placed.push({
      type,
      out,
      y: head - 8,
      nodes: kept.map((node, index) => ({ ...node, y: head + index * ROW + ROW / 2 })),
    });
    drawn += kept.length;
    y = head + kept.length * ROW + 6;
  }
  return { height: Math.max(y + 6, 70), groups: placed, hidden: Math.max(0, total - drawn) };
}

/** A name on at most `LINES` lines of `width` characters. Pure. */
export function wrapped(name, width) {
  const lines = [""];
  for (const word of start(name, width * LINES).split(" ")) {
    const last = lines.at(-1);
    if (last && last.length + 1 + word.length > width && lines.length < LINES) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.map((line) => start(line, width));
}

/** The drawing. `onAsk(name)` when a neighbour is chosen. */
export function drawNeighbours(neighbours, onAsk) {
  const width = window.innerWidth < 720 ? NARROW : WIDE;
  const { height, groups, hidden } = layout(neighbours);
  const own = { width: width * 0.3, x: 1, y: height / 2 };
  const from = own.x + own.width;
  const to = width * 0.42;
  const room = Math.floor((width - to - 20) / 7.4);
  const { node } = neighbours;
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      class: "neighbours",
      role: "group",
      "aria-label": `${node.name} and its neighbours`,
    },
    svg(
      "defs",
      {},
      svg(
        "marker",
        {
          id: "arrow",
          viewBox: "0 0 8 8",
          refX: 7,
          refY: 4,
          markerWidth: 7,
          markerHeight: 7,
          orient: "auto-start-reverse",
        },
        svg("path", { d: "M0 0 8 4 0 8z" }),
      ),
    ),
    groups.map((group) => group.nodes.map((target) => branch(group, target, own, from, to))),
    center(node, own),
    groups.map((group) => [
      text(to, group.y, "type", `${group.out ? "" : "← "}${start(group.type, room)}${group.out ? " →" : ""}`),
      group.nodes.map((target) => neighbour(group, target, to, width, room, onAsk)),
    ]),
  );
  const note =
    hidden > 0
      ? `${plural(neighbours.total, "connection")}; ${count(hidden)} are not drawn.`
      : plural(neighbours.total, "connection");
  return h(
    "figure",
    { class: "drawing" },
    drawing,
    h("figcaption", {}, `${note} Choose a neighbour to ask about it.`),
  );
}

function center(node, { x, y, width }) {
  const lines = wrapped(node.name, Math.floor(width / 7.6));
  const height = lines.length * 17 + 30;
  return svg(
    "g",
    { class: "own" },
    svg("title", {}, `${node.name} (${node.label})`),
    svg("rect", { x, y: y - height / 2, width, height, rx: 8 }),
    lines.map((line, at) => text(x + width / 2, y - height / 2 + 19 + at * 17, "name", line)),
    text(x + width / 2, y + height / 2 - 9, "label", start(node.label, Math.floor(width / 6.6))),
  );
}

function branch({ out }, { y }, own, from, to) {
  const middle = (from + to) / 2;
  const end = to + 2;
  return svg("path", {
    class: "branch",
    d: `M${from} ${own.y}C${middle} ${own.y} ${middle} ${y} ${end} ${y}`,
    ...(out ? { "marker-end": "url(#arrow)" } : { "marker-start": "url(#arrow)" }),
  });
}

function neighbour({ type, out }, node, to, width, room, onAsk) {
  const ask = () => onAsk(node.name);
  const name = start(node.name, Math.max(6, room - Math.min(node.label.length, 14) - 2));
  const label = start(node.label, 14);
  const element = svg(
    "g",
    { class: "neighbour" },
    svg("title", {}, `${node.name} (${node.label})`),
    // the frame is the button: its label has the whole texts, the visible ones may be cut
    svg("rect", {
      x: to + 4,
      y: node.y - 13,
      width: width - to - 6,
      height: 26,
      rx: 6,
      role: "button",
      tabindex: "0",
      "aria-label": `${out ? type : `${type}, from`} ${node.name}, ${node.label}. Ask about it`,
    }),
    svg("text", { x: to + 12, y: node.y + 4.5 }, name, svg("tspan", { class: "label", dx: 8 }, label)),
  );
  element.addEventListener("click", ask);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    ask();
  });
  return element;
}

const text = (x, y, name, content) => svg("text", { x, y, class: name }, content);

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.flat(Infinity));
  return element;
}
