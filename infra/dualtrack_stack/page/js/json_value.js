/**
 * An answer that is a JSON value, as lists and tables. It may be large and deep, and its texts are untrusted.
 *
 * The text decides, not whether a schema was asked for: so a conversation that is read again looks as before.
 */
import { h } from "./dom.js";
import { count, plural, start } from "./format.js";
import { objectsTable, table } from "./graph_result.js";

const MOST = 200_000; // characters of a text that is drawn
const DEPTH = 6;
const ENTRIES = 200; // of each list and object
const CELL = 2_000;

/** The element for a text that is a JSON object or list; null for any other. */
export function drawn(text) {
  const value = parsed(text);
  return value === null ? null : h("div", { class: "json-value" }, element(value, "entries", 0));
}

function parsed(text) {
  if (text.length > MOST) return null;
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function element(value, name, depth) {
  if (typeof value !== "object" || value === null) return scalar(value);
  if (depth >= DEPTH) return h("code", {}, start(JSON.stringify(value), CELL));
  if (!Array.isArray(value)) return object(value, depth);
  if (value.length === 0) return h("span", { class: "empty" }, "none");
  if (value.every(isFlat)) return table(objectsTable(name, value));
  const items = value.slice(0, ENTRIES).map((item) => h("li", {}, element(item, name, depth + 1)));
  return [h("ol", {}, items), left(value.length)];
}

/** An object that a row can show: nothing in it has fields of its own. */
const isFlat = (value) =>
  isObject(value) &&
  Object.values(value).every((field) => !isObject(field) && !(Array.isArray(field) && field.some(isObject)));

function object(value, depth) {
  const fields = Object.entries(value);
  if (fields.length === 0) return h("span", { class: "empty" }, "none");
  const shown = fields
    .slice(0, ENTRIES)
    .map(([name, field]) => [h("dt", {}, start(name, 100)), h("dd", {}, element(field, name, depth + 1))]);
  return [h("dl", {}, shown), left(fields.length)];
}

function scalar(value) {
  if (value === null) return h("span", { class: "empty" }, "none");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return start(String(value), CELL);
}

const left = (all) =>
  all > ENTRIES ? h("p", { class: "empty" }, `${count(all - ENTRIES)} more of ${plural(all, "line")}`) : "";
