/**
 * The result of a graph tool as tables, and a node with its neighbours as a drawing.
 *
 * The result's shape decides, not the tool's name: rows with columns, lists of objects, a node with
 * connections. Everything is bounded: a result may have a megabyte, and its names are untrusted.
 */
import { h } from "./dom.js";
import { count, plural, start } from "./format.js";
import { drawNeighbours } from "./graph_drawing.js";
import { stylesheet } from "./stylesheet.js";

await stylesheet(new URL("../css/graph.css", import.meta.url).href);

const TABLES = 6;
const ROWS = 200;
const COLUMNS = 12;
const DEPTH = 3;
const CELL = 160;
const SHORT = 32; // characters that stay on one line

/**
 * `{tables: [{title, columns, rows, total}], neighbours}` of a result's text; null if it has no such shape.
 * Pure.
 */
export function shapeOf(text) {
  const result = parsed(text);
  if (!isObject(result)) return null;
  const neighbours = isNode(result.node) && Array.isArray(result.connections) ? neighboursOf(result) : null;
  const tables = tablesOf(
    neighbours ? { connections: result.connections.map(connection) } : result,
    "",
  ).slice(0, TABLES);
  return tables.length > 0 || neighbours ? { tables, neighbours } : null;
}

/** The shape on the page. `onAsk(name)`: the reader asks about a neighbour. */
export function graphResult({ tables, neighbours }, onAsk) {
  return h(
    "div",
    { class: "graph-result" },
    neighbours ? drawNeighbours(neighbours, onAsk) : "",
    tables.map(table),
  );
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // no JSON, or cut
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const isNode = (value) =>
  isObject(value) && typeof value.name === "string" && typeof value.label === "string";

/** `{node, total, groups: [{type, out, nodes}]}`, groups and nodes in the result's order. */
function neighboursOf({ node, connections, total_count: total }) {
  const groups = new Map();
  for (const link of connections) {
    if (!isObject(link) || !isNode(link.node)) continue;
    const key = `${link.direction} ${link.type}`;
    if (!groups.has(key))
      groups.set(key, { type: String(link.type), out: link.direction !== "in", nodes: [] });
    groups.get(key).nodes.push(link.node);
  }
  return { node, total: Number.isInteger(total) ? total : connections.length, groups: [...groups.values()] };
}

/** A connection as a row of a table. */
const connection = (link) =>
  isObject(link) && isObject(link.node) ? { direction: link.direction, type: link.type, ...link.node } : link;

function tablesOf(value, title, depth = 0) {
  if (depth > DEPTH || !isObject(value)) return [];
  if (Array.isArray(value.columns) && Array.isArray(value.rows)) return [rowsTable(title || "rows", value)];
  return Object.entries(value).flatMap(([key, child]) => {
    if (Array.isArray(child) && child.length > 0 && child.every(isObject))
      return [objectsTable(key, child, value.total_count)];
    return tablesOf(child, key, depth + 1);
  });
}

function rowsTable(title, { columns, rows }) {
  const kept = rows
    .slice(0, ROWS)
    .map((row) => (Array.isArray(row) ? row : [row]).slice(0, COLUMNS).map(cell));
  return { title, columns: columns.slice(0, COLUMNS).map(cell), rows: kept, total: rows.length };
}

/** A list of objects as the value of `table`. */
export function objectsTable(title, objects, total) {
  const flat = objects.slice(0, ROWS).map(flattened);
  const columns = [...new Set(flat.flatMap((object) => Object.keys(object)))].slice(0, COLUMNS);
  const rows = flat.map((object) => columns.map((name) => cell(object[name])));
  return { title, columns, rows, total: Math.max(objects.length, Number.isInteger(total) ? total : 0) };
}

/** An object with its properties merged in; `cell` shows a list of objects as a number of entries. */
const flattened = ({ properties, ...rest }) => ({ ...rest, ...(isObject(properties) ? properties : {}) });

function cell(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value))
    return value.every((entry) => !isObject(entry))
      ? start(value.join(", "), CELL)
      : plural(value.length, "entry").replace("entrys", "entries");
  if (isNode(value)) return start(value.name, CELL);
  return start(isObject(value) ? JSON.stringify(value) : String(value), CELL);
}

const words = (name) => name.replace(/_/g, " ");

/** A table with a caption; it scrolls on its own. */
export function table({ title, columns, rows, total }) {
  const shown = rows.length < total ? `${count(rows.length)} of ${count(total)}` : count(total);
  const numeric = columns.map(
    (_, at) => rows.length > 0 && rows.every((row) => /^-?[\d.]*$/.test(row[at] ?? "")),
  );
  const caption = `${words(title)} (${shown})`;
  return h(
    "div",
    { class: "result-table", role: "region", "aria-label": caption, tabindex: "0" },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((name, at) =>
            h("th", { scope: "col", class: numeric[at] ? "number" : null }, words(name)),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((text, at) =>
              h("td", { class: numeric[at] ? "number" : text.length < SHORT ? "short" : null }, text),
            ),
          ),
        ),
      ),
    ),
  );
}
