/**
 * Elements, without a framework: `h("button", { class: "quiet", onclick: close }, "Close")`.
 *
 * Attributes that are null, undefined or false are left out; `on…` are listeners. Text goes in as text,
 * never as markup.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  attach: "M8 12.5 14.2 6.3a3 3 0 0 1 4.3 4.3l-8 8a5 5 0 0 1-7-7l7.6-7.7",
  bin: "M5 7h14M10 7V5h4v2M7 7l.8 12h8.4L17 7M10.5 10.5v5M13.5 10.5v5",
  branch:
    "M7 4v9M7 13a2.5 2.5 0 1 0 .01 5A2.5 2.5 0 0 0 7 13M17 4.5a2 2 0 1 0 .01 4 2 2 0 0 0-.01-4M17 8.5c0 5-6 3-9 6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  cross: "M7 7l10 10M17 7 7 17",
  down: "M12 5v14M6 13l6 6 6-6",
  file: "M7 3h7l4 4v14H7zM14 3v4h4",
  left: "M14.5 6 8.5 12l6 6",
  menu: "M4 7h16M4 12h16M4 17h10",
  pencil: "M5 19l1-4L16.5 4.5l3 3L9 18z",
  right: "M9.5 6l6 6-6 6",
};

/** A decorative icon; the control needs a name of its own. */
export const icon = (name) => drawn(PATHS[name]);

/** The same by its path in a square of 24. */
export function drawn(d) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", d);
  svg.append(path);
  return svg;
}

/** A record's id as a button that opens the record; `openRecords` listens for it. */
export function recordButton(recordId, label = recordId) {
  const name = label === recordId ? `Record ${recordId}` : `${label}, record ${recordId}`;
  return h(
    "button",
    { type: "button", class: "record-id", "data-record": recordId, "aria-label": name },
    label,
  );
}

/** Announces a text to screen readers, once. */
export function announce(text) {
  byId("status").textContent = text;
}

const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent;

/** What an element was drawn again as, by its name. */
export const again = (element, root = document) =>
  [...root.querySelectorAll(element.localName)].find((other) => nameOf(other) === nameOf(element));

/** Draws a part again. What had the focus there has it again, or else the part. */
export function redraw(part, ...content) {
  const focused = document.activeElement;
  const hadFocus = part.contains(focused);
  part.replaceChildren(...content);
  if (hadFocus) (again(focused, part) ?? part).focus();
}

/** Back to an item's actions: `draw()` shows them, then the one that was used has the focus. */
export function wayBack(place, draw) {
  const used = document.activeElement;
  return () => {
    draw();
    again(used, place)?.focus();
  };
}
