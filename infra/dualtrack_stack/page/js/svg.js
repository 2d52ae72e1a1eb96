/** SVG elements, as `h` makes HTML ones: null attributes are left out, text is added as text. */
const SVG = "http://www.w3.org/2000/svg";

export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== null) element.setAttribute(name, String(value));
  element.append(...children.flat(Infinity));
  return element;
}
