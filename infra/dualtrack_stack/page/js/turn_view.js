/** A turn on the page: what the model thought, what it wrote before its tools, and their calls. */
import { tickBusy } from "./busy_model.js";
import { h, icon, recordButton, redraw } from "./dom.js";
import { fileChips } from "./file_chip.js";
import { between, seconds, start } from "./format.js";
import { resultPreview } from "./result_preview.js";
import { marked, writtenOut } from "./visible.js";

const STATES = {
  running: "running",
  waiting: "waiting for you",
  ok: "done",
  error: "failed",
  declined: "declined",
  unknown: "may have run",
  stopped: "stopped",
};

const SHORT_INPUT = 160;

export class TurnView {
  element = h("li", { class: "turn" });
  #shown = {};
  #head = h("p", { class: "turn-head" });
  #thinking = h("details", { class: "thinking", hidden: true });
  #thoughtHead = h("summary", {});
  #thought = h("p", { class: "thought" });
  #interim = h("p", { class: "interim", hidden: true });
  #calls = h("ul", { class: "calls", hidden: true });

  constructor() {
    this.#thinking.append(this.#thoughtHead, this.#thought);
    this.element.append(this.#head, this.#thinking, this.#interim, this.#calls);
  }

  /** Draws what has changed, so that what the reader has opened or focused stays. `runs`: its chat does. */
  update(turn, calls, runs) {
    const before = this.#shown;
    const own = turn.calls.map((id) => calls[id]);
    this.#shown = { ...turn, own, runs };
    const changed = (...names) => names.some((name) => before[name] !== this.#shown[name]);
    if (changed("began", "ended", "runs")) this.#head.replaceChildren(...headOf(turn, runs));
    if (changed("thinking", "thought", "ended")) this.#drawThinking(turn);
    this.#interim.hidden = own.length === 0 || !turn.text;
    this.#interim.textContent = this.#interim.hidden ? "" : turn.text;
    if (own.length !== before.own?.length || own.some((call, place) => call !== before.own[place]))
      redraw(this.#calls, ...own.map(callItem));
    this.#calls.hidden = own.length === 0;
    return this.element;
  }

  #drawThinking({ thinking, thought, began, ended }) {
    const until = thought || ended;
    this.#thinking.hidden = !thinking;
    this.#thoughtHead.textContent = !began
      ? "Thinking"
      : until
        ? `Thought for ${seconds(between(began, until))}`
        : "Thinking…";
    this.#thought.textContent = thinking;
  }
}

/** How long the model thought in all of these turns. */
export function thoughtFor(turns) {
  const times = turns.map(({ thinking, began, thought, ended }) =>
    thinking && began ? between(began, thought || ended) : 0,
  );
  const total = times.reduce((sum, time) => sum + time, 0);
  return total ? `Thought for ${seconds(total)}` : "Thinking";
}

function headOf({ turn, began, ended }, runs) {
  const time = began && ended ? seconds(between(began, ended)) : began && runs ? clock(began) : "";
  return [h("span", {}, `Turn ${turn}`), time && h("span", { class: "time" }, time)].filter(Boolean);
}

function callItem(toolCall) {
  const time =
    toolCall.state === "running"
      ? clock(toolCall.began)
      : isDone(toolCall) && toolCall.seconds !== null
        ? seconds(toolCall.seconds)
        : "";
  return h(
    "li",
    { class: `call ${toolCall.state}` },
    mark(toolCall.state),
    h(
      "div",
      { class: "call-body" },
      h(
        "p",
        { class: "call-head" },
        h("span", { class: "tool" }, toolCall.tool),
        h(
          "span",
          { class: toolCall.state === "unknown" ? "call-unknown" : "visually-hidden" },
          ` ${STATES[toolCall.state]} `,
        ),
        isDone(toolCall) ? recordButton(toolCall.id) : "",
        time && h("span", { class: "time" }, time),
      ),
      argumentsOf(toolCall.input ?? {}),
      isDone(toolCall) && toolCall.preview
        ? h("p", { class: "preview" }, resultPreview(toolCall.preview))
        : "",
      fileChips(toolCall.attachments ?? []),
    ),
  );
}

/** The arguments in a line; whole on request if they do not fit. */
function argumentsOf(input) {
  const values = Object.values(input);
  const line = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" · ");
  const short = start(line, SHORT_INPUT);
  const isWhole = short === line && values.every((value) => typeof value !== "object");
  if (isWhole) return line && h("p", { class: "input" }, marked(line));
  return h(
    "details",
    { class: "input" },
    h("summary", {}, marked(short)),
    h("pre", { class: "raw", tabindex: "0" }, writtenOut(JSON.stringify(input, null, 2))),
  );
}

const isDone = ({ state }) => state !== "running" && state !== "waiting";

function mark(state) {
  if (state === "running") return spinner();
  if (state === "waiting") return h("span", { class: "waiting-mark", "aria-hidden": "true" });
  return h("span", { class: "state" }, icon(state === "ok" ? "check" : "cross"));
}

export const spinner = () => h("span", { class: "spinner", "aria-hidden": "true" });

/** A running time; `tick` updates all of them. */
const clock = (began) =>
  h("span", { class: "clock", "data-began": began }, seconds(between(began, new Date().toISOString())));

export function tick() {
  tickBusy();
  const now = new Date().toISOString();
  for (const element of document.querySelectorAll(".clock"))
    element.textContent = seconds(between(element.dataset.began, now));
}

const WORDS = {
  retrieve_documentation: "searching documentation",
  retrieve_full_context: "reading the full record",
  search_conversation: "searching this conversation",
  search_course_content: "searching course materials",
  get_course_outline: "reading a course's outline",
  find_node: "looking a node up",
  run_query: "querying the graph",
  find_path: "looking for a path",
  get_schema: "reading the graph's schema",
};

export const label = (tool) => WORDS[tool] ?? tool;
