/** The button that shows the available credits. */
import { byId } from "./dom.js";
import { count } from "./format.js";

const FEW = 5; // what a chat needs

export function showCredits(available) {
  byId("credits-figure").textContent = count(available);
  byId("credits").setAttribute("aria-label", `${count(available)} credits left. Show credits`);
  byId("credits").classList.toggle("low", available < FEW);
}

export async function loadCredits(api) {
  try {
    showCredits((await api.credits()).available);
  } catch {
    // the figure stays; a real problem shows at the next message
  }
}
