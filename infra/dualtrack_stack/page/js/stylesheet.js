/** Resolves when the styles are there, or cannot be had. `href`: an address of the page's own. */
import { h } from "./dom.js";

export const stylesheet = (href) =>
  new Promise((resolve) => {
    const link = h("link", { rel: "stylesheet", href });
    for (const event of ["load", "error"]) link.addEventListener(event, resolve, { once: true });
    document.head.append(link);
  });
