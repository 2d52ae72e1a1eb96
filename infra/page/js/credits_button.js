/** The button with the credits that are left. */
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
    // the figure stays as it is; a real problem shows at the next message
  }
}
