/** An exchange on the page: the question, the steps, the answer, its sources and its figures. */
import { AnswerText } from "./answer_text.js";
import { branchLinks } from "./branch_links.js";
import { busyLine, busyText, isTold } from "./busy_model.js";
import { codeBlock, colourCode } from "./code_block.js";
import { announce, h, recordButton, redraw } from "./dom.js";
import { isOpen, writing } from "./exchange.js";
import { piecesOf } from "./fences.js";
import { fileChips } from "./file_chip.js";
import { count, plural, soFar } from "./format.js";
import { load } from "./patience.js";
import { sourceList } from "./source_list.js";
import { label, spinner, TurnView, thoughtFor } from "./turn_view.js";

const STOPS = {
  max_turns: "The turn limit was reached; the answer uses what was found so far.",
  insufficient_credits: "The credits for more tools ran out; the answer uses what was found so far.",
  max_tokens: "The answer reached its length limit and is cut off.",
  context_window: "The answer is cut off: the model's context window is full.",
  max_cost: "The chat reached its cost limit; the answer uses what was found so far.",
  timeout: "The chat ran out of time; the answer uses what was found so far.",
  refusal:
    "The model's service declined to answer. The model no longer reads this question, so you can go on.",
  other: "The model stopped before its end; this is what it had written.",
  invalid_output: "The answer does not fit the schema that was asked for.",
};

/** The service's categories in words; an unknown one is not shown. */
const CATEGORIES = {
  cyber: "Its reason: attacks on computers.",
  bio: "Its reason: dangerous biology.",
  frontier_llm: "Its reason: the making of rival models.",
  reasoning_extraction: "Its reason: the model's own thinking was asked for.",
  general_harms: "Its reason: something that may do harm.",
};

const MOST_CODE = 20; // coloured blocks of a question

export class ExchangeView {
  element = h("li", { class: "exchange" });
  #exchange;
  #said = {};
  #locked = "";
  #isLast = false;
  #editor = null;
  #question = h("div", { class: "question" });
  #files = ""; // kept, with the pictures that were read
  #steps = h("details", { class: "steps", hidden: true });
  #stepsHead = h("summary", {});
  #stepList = h("ol", { class: "turns" });
  #turns = new Map();
  #shortage = null;
  #trouble = h("p", { class: "connection", hidden: true });
  #pause = h("div", { hidden: true });
  #answer = h("div", { class: "answer prose", hidden: true });
  #text = new AnswerText(this.#answer);
  #value = h("div", { hidden: true });
  #foot = h("div", { class: "exchange-foot" });
  #heading = h("h2", { class: "visually-hidden" });

  #decisions;

  /** `decisions`: describe(tool) and decide(view, decision), for a chat that waits. */
  constructor(exchange, decisions) {
    this.#decisions = decisions;
    this.#steps.append(this.#stepsHead, this.#stepList);
    this.element.append(
      this.#heading,
      this.#question,
      this.#steps,
      this.#trouble,
      this.#pause,
      this.#answer,
      this.#value,
      this.#foot,
    );
    this.update(exchange);
  }

  get exchange() {
    return this.#exchange;
  }

  update(exchange) {
    const before = this.#exchange;
    this.#exchange = exchange;
    const changed = (...names) => !before || names.some((name) => before[name] !== exchange[name]);
    this.element.dataset.status = exchange.status;
    if (changed("attachments")) this.#files = fileChips(exchange.attachments);
    if (changed("messageId", "question", "continues", "attachments", "branches")) this.#drawQuestion();
    if (changed("status", "uploaded", "turns", "calls", "shortage", "turnCount")) this.#drawSteps(before);
    if (changed("pause")) this.#drawPause();
    if (changed("status", "turns", "response")) this.#drawAnswer();
    if (
      changed(
        "status",
        "sources",
        "memory",
        "stop",
        "category",
        "leftOut",
        "error",
        "credits",
        "responseId",
        "response",
      )
    )
      this.#drawFoot();
    this.#trouble.hidden = !exchange.trouble || !isOpen(exchange);
    this.#trouble.textContent = exchange.trouble;
    if (before) this.#say(before);
  }

  /** Why no question can be asked in this conversation now; empty if it can. */
  set locked(reason) {
    if (reason === this.#locked) return;
    this.#locked = reason;
    this.#drawFoot();
  }

  /** Whether no question follows: only then can its answer go on. */
  set last(isLast) {
    if (isLast === this.#isLast) return;
    this.#isLast = isLast;
    this.#drawFoot();
  }

  /** Shows an editor instead of the question, or the question again (null). */
  set editor(editor) {
    this.#editor = editor;
    this.#drawQuestion();
    if (editor) editor.focus();
    else this.#question.querySelector("[data-edit]")?.focus();
  }

  get isEdited() {
    return this.#editor !== null;
  }

  #drawQuestion() {
    const { messageId, question, continues, branches } = this.#exchange;
    this.#heading.textContent = continues ? `Continued ${messageId}` : `Question ${messageId}`;
    this.#question.classList.toggle("edited", this.isEdited);
    this.#question.classList.toggle("continued", continues !== "");
    if (continues)
      return redraw(
        this.#question,
        h("p", { class: "fine muted" }, "The answer above goes on"),
        branches ? branchLinks(messageId.slice(1), branches) : "",
      );
    if (this.isEdited) {
      if (!this.#question.contains(this.#editor.element))
        this.#question.replaceChildren(this.#editor.element);
      return;
    }
    redraw(
      this.#question,
      questionText(question),
      this.#files,
      messageId ? questionFoot(messageId, branches) : "",
    );
  }

  #drawSteps(before) {
    const { status, turns, calls, shortage } = this.#exchange;
    const running = isOpen(this.#exchange);
    const none = Object.keys(calls).length === 0 && !shortage && !turns.some((turn) => turn.thinking);
    this.#steps.hidden = !running && none;
    // open while it runs, closed once it is answered, unless the reader has toggled it
    if (running && !isOpenBefore(before)) this.#steps.open = true;
    if (before && isOpen(before) && !running) this.#steps.open = false;
    this.#stepsHead.replaceChildren(...this.#summary(running));
    const list = turns
      .filter((turn) => running || turn.calls.length > 0 || turn.thinking)
      .map((turn) => this.#turn(turn.turn).update(turn, calls, status === "running"));
    if (shortage) list.push(this.#short(shortage));
    const { children } = this.#stepList;
    if (list.length !== children.length || list.some((item, place) => item !== children[place]))
      this.#stepList.replaceChildren(...list);
  }

  /** The view of a turn: the same one each time, so that what the reader has opened stays open. */
  #turn(number) {
    if (!this.#turns.has(number)) this.#turns.set(number, new TurnView());
    return this.#turns.get(number);
  }

  #short({ required, available }) {
    this.#shortage ??= h(
      "li",
      { class: "shortage" },
      `A tool was not run: it needs ${plural(required, "credit")}, ${count(available)} are left.`,
    );
    return this.#shortage;
  }

  #summary(running) {
    const { status, uploaded, turns, turnCount, calls, shortage } = this.#exchange;
    const all = Object.values(calls);
    if (running) {
      const last = turns.at(-1);
      if (!last && uploaded !== null) return [spinner(), `Uploading: ${Math.floor(uploaded * 100)} %`];
      if (!last) return [spinner(), "Starting"];
      if (status === "paused") return ["Waiting for you"];
      if (last.retry) return [spinner(), busyLine(last.retry)];
      const busy = all.filter((call) => call.state === "running");
      const doing =
        busy.length > 0
          ? busy.map((call) => label(call.tool)).join(", ")
          : last.calls.length > 0
            ? "reading the results"
            : "thinking";
      return [
        spinner(),
        last.final
          ? `Last turn: writing the answer${last.misfit ? " once more, since it did not fit its schema" : ""}`
          : `Turn ${last.turn} of ${last.maxTurns}: ${last.text && !last.calls.length ? "writing" : doing}`,
      ];
    }
    const failed = all.filter((call) => call.state === "error").length;
    const rounds = turns.filter((turn) => turn.calls.length > 0).length;
    if (all.length === 0 && !shortage) return [thoughtFor(turns)];
    return [
      `${plural(all.length, "tool")} in ${plural(rounds, "round")}, ${plural(turnCount || turns.length, "model call")}`,
      failed ? h("span", { class: "bad" }, `${failed} failed`) : "",
    ];
  }

  async #drawPause() {
    const { pause } = this.#exchange;
    const wasDecided = this.#pause.querySelector("[inert]") !== null;
    this.#pause.hidden = !pause;
    if (!pause) return this.#pause.replaceChildren();
    const { pauseCard } = await load(() => import("./pause_card.js"));
    if (pause !== this.#exchange.pause) return; // decided meanwhile
    const decide = (decision) => this.#decisions.decide(this, decision);
    this.#pause.replaceChildren(pauseCard(pause, { ...this.#decisions, decide }));
    if (wasDecided) this.#pause.querySelector("button")?.focus(); // on to the next call
  }

  #drawAnswer() {
    const running = isOpen(this.#exchange);
    const text = this.#exchange.response ?? writing(this.#exchange);
    const show = running || this.#exchange.response !== null || text !== "";
    this.#answer.hidden = !show || text === "";
    this.#answer.setAttribute("aria-busy", String(running));
    this.#answer.classList.toggle("streaming", running);
    this.#text.update(text, !running);
    this.#drawValue(running ? "" : text);
  }

  /** An answer that is JSON is drawn as lists and tables, in place of its text. */
  async #drawValue(text) {
    const value = /^\s*[[{]/.test(text) ? (await load(() => import("./json_value.js"))).drawn(text) : null;
    if (value && text !== this.#exchange.response) return; // a later answer is being drawn
    this.#value.replaceChildren(value ?? "");
    this.#value.hidden = !value;
    if (value) this.#answer.hidden = true;
  }

  #drawFoot() {
    const { status, stop, category, leftOut, error, sources, response, continues } = this.#exchange;
    if (isOpen(this.#exchange)) return this.#foot.replaceChildren();
    const parts = [];
    if (status === "failed")
      parts.push(verdict("bad", error?.message ?? "This chat failed. Nothing was charged."));
    else if (status === "cancelled")
      parts.push(verdict("", response ? "Stopped: this is what was written until then." : "Stopped."));
    else if (STOPS[stop]) parts.push(verdict("", STOPS[stop]));
    if (stop === "refusal" && CATEGORIES[category]) parts.push(verdict("", CATEGORIES[category]));
    if (stop === "refusal" && !continues)
      parts.push(action("Ask in other words", { "data-rephrase": this.#exchange.messageId }));
    if (leftOut && stop !== "refusal")
      parts.push(
        verdict(
          "",
          `What question ${leftOut.slice(1)} had found was left out, so that the service answers again.`,
        ),
      );
    if (sources.length > 0) parts.push(sourceList(sources));
    parts.push(this.#figures());
    return redraw(this.#foot, ...parts);
  }

  #figures() {
    const { status, responseId, turnCount, credits, memory } = this.#exchange;
    const facts = [];
    if (turnCount > 0) facts.push(plural(turnCount, "turn"));
    if (credits) facts.push(plural(credits.used, "credit"));
    if (memory && memory.conversation_dollars > 0) facts.push(soFar(this.#exchange));
    return h(
      "p",
      { class: "figures" },
      responseId && this.#exchange.response !== null ? recordButton(responseId) : "",
      facts.map((fact) => h("span", {}, fact)),
      h("span", { class: "actions" }, this.#actions(status)),
    );
  }

  #actions(status) {
    const { messageId, chatId, continues, response, stop } = this.#exchange;
    const isLast = this.#isLast;
    const number = messageId.slice(1);
    const ended = status === "failed" || status === "cancelled";
    const locked = this.#locked && { "aria-disabled": "true", title: this.#locked };
    return [
      response ? action("Copy", { "data-copy": "answer" }) : "",
      isLast && stop === "max_tokens"
        ? action("Continue", {
            "data-continue": messageId,
            "aria-label": `Continue the answer to question ${number}`,
            title: "Let the answer go on where it ends",
            ...locked,
          })
        : "",
      ended ? action("Try again", { "data-retry": true, ...locked }) : "",
      chatId && (response || ended)
        ? action("Receipt", { "data-receipt": chatId, "aria-label": `Receipt of question ${number}` })
        : "",
      messageId && !continues && (response || ended)
        ? action("Regenerate", {
            "data-regenerate": messageId,
            "aria-label": `Regenerate the answer to question ${number}`,
            title: "Ask the same again, in a new branch",
          })
        : "",
      messageId && response
        ? action("Branch from here", {
            "data-branch": messageId,
            "aria-label": `Branch from here, after question ${number}`,
            title: "Ask something else next, in a new branch",
          })
        : "",
    ];
  }

  /** Announces each step to screen readers, never the streaming text. */
  #say(before) {
    const { status, turns, calls } = this.#exchange;
    const last = turns.at(-1);
    if (status !== before.status) {
      const words = {
        answered: "The answer is there.",
        failed: "The chat failed.",
        cancelled: "The chat was stopped.",
        paused: "The chat waits for your decision.",
      };
      if (words[status]) announce(words[status]);
    } else if (last && last.calls.length > 0 && this.#said.turn !== last.turn) {
      this.#said = { turn: last.turn };
      announce(`Turn ${last.turn}: ${last.calls.map((id) => label(calls[id].tool)).join(", ")}`);
    } else if (last?.retry && last.retry !== before.turns.at(-1)?.retry && isTold(last.retry)) {
      announce(busyText(last.retry, last.retry.at));
    }
  }
}

const action = (text, attributes) =>
  h("button", { type: "button", class: "link-button", ...attributes }, text);

/** The question as written, with fenced code as code. */
function questionText(question) {
  const pieces = piecesOf(question);
  if (!pieces.some((piece) => piece.code !== undefined)) return h("p", { class: "question-text" }, question);
  const text = h(
    "div",
    { class: "question-text" },
    pieces.map(({ text, code, language }) =>
      code === undefined ? h("p", {}, text) : codeBlock(code, language),
    ),
  );
  colourCode(text, MOST_CODE);
  return text;
}

function questionFoot(messageId, branches) {
  const number = messageId.slice(1);
  return h(
    "div",
    { class: "question-foot" },
    branches ? branchLinks(number, branches) : "",
    action("Edit", {
      "data-edit": messageId,
      "aria-label": `Edit question ${number}`,
      title: "Ask it differently, in a new branch",
    }),
    recordButton(messageId),
  );
}

const isOpenBefore = (before) => before !== undefined && isOpen(before);

const verdict = (kind, text) => h("p", { class: `verdict ${kind}` }, text);
