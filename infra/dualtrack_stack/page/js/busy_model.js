/** The line of a chat that waits for a busy model, worded as on the terminal. */
import { h } from "./dom.js";
import { between, count } from "./format.js";

const local = (at) => new Date(at).toLocaleTimeString([], { hourCycle: "h23" });

/** `retry` is a turn's (exchange.js); `now` is ISO 8601. Pure. */
export function busyText({ tries, at, seconds, until }, now) {
  const left = Math.max(0, Math.round(seconds - between(at, now)));
  const next = seconds ? `again in ${count(left)} s` : "asking again";
  return `The model is busy: try ${count(tries)}, ${next}, until ${local(until)} at the latest`;
}

/** The line, which `tickBusy` counts down. */
export function busyLine(retry) {
  const line = h("span", { class: "busy-model" }, busyText(retry, new Date().toISOString()));
  line.retry = retry;
  return line;
}

export function tickBusy() {
  for (const line of document.querySelectorAll(".busy-model"))
    line.textContent = busyText(line.retry, new Date().toISOString());
}

/** Whether a screen reader is told: of the tries 1, 2, 4, 8 and so on. Pure. */
export const isTold = ({ tries, seconds }) => seconds > 0 && (tries & (tries - 1)) === 0;
