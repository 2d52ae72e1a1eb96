/** Copies a text; the pressed button says so for a moment. */
import { announce, icon } from "./dom.js";

export async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  announce("Copied.");
  const label = [...button.childNodes];
  button.replaceChildren(icon("check"), "Copied");
  setTimeout(() => button.replaceChildren(...label), 1500);
}
