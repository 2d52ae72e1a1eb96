/** A chat that waits for the reader: what is about to happen, and the ways to decide. */
import { h, wayBack } from "./dom.js";
import { moment } from "./format.js";
import { Reading } from "./reading.js";
import { isWrittenOut, marked, visible, writtenOut } from "./visible.js";

const DESTROYS = "It destroys something: what it deletes or overwrites may be gone for good.";
const ALLOW = "Allow in this conversation";
const READ_FIRST = "Show all of its arguments, then you can approve it.";
const UNSEEN = "It has characters that cannot be seen. They are written out now: read it again.";

/**
 * `pause`: `{calls, expiresAt}`; `describe(tool)`: what the tool does; `decide(decision)` sends one decision and
 * rejects with the API's error.
 */
export function pauseCard(pause, { describe, decide }) {
  return h(
    "section",
    { class: "pause-card", "aria-label": "Waiting for you" },
    pause.calls.map((call) => waiting(call, { describe, decide })),
    h(
      "p",
      { class: "fine muted" },
      `Nothing runs meanwhile. Without a decision by ${moment(pause.expiresAt)} the chat goes on without it.`,
    ),
  );
}

function waiting(call, actions) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const group = h("div", { class: "pause-call", role: "group", "aria-label": visible(call.tool) });
  const decide = async (decision) => {
    const used = document.activeElement;
    group.inert = true;
    problem.hidden = true;
    try {
      await actions.decide({ id: call.id, ...decision });
    } catch (refused) {
      problem.textContent = refused.message;
      problem.hidden = false;
    } finally {
      group.inert = false;
      if (used.isConnected) used.focus();
    }
  };
  const show = { client_tool: ownTool, question }[call.kind] ?? approval;
  group.append(...show(call, { ...actions, decide }), problem);
  return group;
}

function approval(call, { describe, decide }) {
  const body = h("div", {});
  const choices = () => {
    const agree = [
      button("Approve", () => decide({ approve: true }), weight(call), call),
      ...(call.allowable
        ? [button(ALLOW, () => decide({ approve: true, for: "conversation" }), "", call)]
        : []),
    ];
    const hint = h("p", { class: "fine muted" }, READ_FIRST);
    const reading = new Reading(() => {
      hint.remove();
      for (const one of agree) one.disabled = false;
    });
    const table = argumentTable(call, reading);
    for (const one of agree) one.disabled = !reading.isWhole;
    const [approve, ...allow] = agree;
    body.replaceChildren(
      table,
      reading.isWhole ? "" : hint,
      buttons(approve, button("Edit", edit, "", call), button("Decline", decline, "", call), allow),
    );
  };
  const edit = () => {
    const back = wayBack(body, choices);
    const field = h("textarea", { rows: 6, spellcheck: "false", class: "pause-input" });
    field.value = writtenOut(JSON.stringify(call.input, null, 2));
    const send = () => {
      const input = parsed(field.value);
      const problem = isWrittenOut(field.value) ? "" : UNSEEN;
      field.value = writtenOut(field.value);
      field.setCustomValidity(input ? problem : "These are no JSON arguments: write {…}.");
      if (field.reportValidity()) decide({ input });
    };
    body.replaceChildren(
      h("label", {}, "Arguments", field),
      buttons(button("Approve as edited", send, weight(call), call), button("Back", back, "", call)),
    );
    field.addEventListener("input", () => field.setCustomValidity(""));
    field.focus();
  };
  const decline = () => declining(call, body, decide, choices);
  choices();
  return [heading(call), description(describe(call.tool)), destroys(call), body];
}

/** A tool that a program runs: what it was asked for, and a way to answer in its place. */
function ownTool(call, { decide }) {
  const body = h("div", {});
  const choices = () =>
    body.replaceChildren(
      argumentTable(call, new Reading()),
      buttons(
        button("Enter the result", enter, "", call),
        button("Decline", () => declining(call, body, decide, choices), "", call),
      ),
    );
  const enter = () => {
    const back = wayBack(body, choices);
    const field = h("textarea", { rows: 4, class: "pause-input" });
    const send = (more) => decide({ result: field.value, ...more });
    body.replaceChildren(
      h("label", {}, "Result", field),
      buttons(
        button("Send the result", () => send({}), "primary", call),
        button("Send as an error", () => send({ is_error: true }), "", call),
        button("Back", back, "", call),
      ),
    );
    field.focus();
  };
  choices();
  return [
    h("h3", {}, "Waiting for a program to run ", h("code", {}, marked(call.tool))),
    description("The program that started this chat runs it and sends the result."),
    body,
  ];
}

function question(call, { decide }) {
  const body = h("div", {});
  const field = h("textarea", { rows: 2, required: "" });
  const send = () => {
    field.setCustomValidity(field.value.trim() ? "" : "Write an answer first.");
    if (field.reportValidity()) decide({ answer: field.value });
  };
  field.addEventListener("input", () => field.setCustomValidity(""));
  const options = Array.isArray(call.input.options) ? call.input.options : [];
  const choices = () =>
    body.replaceChildren(
      options.length
        ? buttons(options.map((option) => button(option, () => decide({ answer: option }), "", call)))
        : "",
      h("label", {}, options.length ? "Another answer" : "Your answer", field),
      buttons(
        button("Answer", send, "primary", call),
        button("Decline", () => declining(call, body, decide, choices), "", call),
      ),
    );
  choices();
  return [h("h3", { class: "pause-question" }, marked(call.input.question)), body];
}

/** Asks for a reason; `choices` shows the other ways again. */
function declining(call, body, decide, choices) {
  const back = wayBack(body, choices);
  const field = h("input", {
    maxlength: 500,
    placeholder: "Optional: it tells the model what to do instead",
  });
  const send = () => decide({ approve: false, ...(field.value.trim() && { reason: field.value.trim() }) });
  field.addEventListener("keydown", (event) => event.key === "Enter" && send());
  body.replaceChildren(
    h("label", {}, "Reason", field),
    buttons(button("Decline", send, "danger", call), button("Back", back, "", call)),
  );
  field.focus();
}

const heading = (call) => h("h3", {}, "May it run ", h("code", {}, marked(call.tool)), "?");

const destroys = (call) => (call.effect === "destroys" ? h("p", { class: "pause-destroys" }, DESTROYS) : "");

const description = (text) => (text ? h("p", { class: "muted" }, marked(text)) : "");

const weight = (call) => (call.effect === "destroys" ? "danger" : "primary");

const buttons = (...all) => h("div", { class: "buttons" }, all);

/** `call`: named for those who hear the button alone. */
const button = (text, onclick, kind, call) =>
  h(
    "button",
    { type: "button", class: `button ${kind}`, "aria-label": visible(`${text}: ${call.tool}`), onclick },
    marked(text),
  );

function argumentTable({ tool, input }, reading) {
  const entries = Object.entries(input ?? {});
  if (entries.length === 0) return h("p", { class: "muted" }, "Without arguments.");
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": `Arguments of ${visible(tool)}` },
    h(
      "table",
      { class: "pause-arguments" },
      h(
        "tbody",
        {},
        entries.map(([name, value]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, reading.text(name, name)),
            h("td", {}, reading.text(shown(value), name)),
          ),
        ),
      ),
    ),
  );
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
