/** A chat that waits for the reader: what is about to happen, and the ways to decide. */
import { h, wayBack } from "./dom.js";
import { moment } from "./format.js";

const DESTROYS = "It destroys something: what it deletes or overwrites may be gone for good.";
const ALLOW = "Allow in this conversation";

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
  const group = h("div", { class: "pause-call", role: "group", "aria-label": call.tool });
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
  const choices = () =>
    body.replaceChildren(
      argumentTable(call),
      buttons(
        button("Approve", () => decide({ approve: true }), weight(call), call),
        button("Edit", edit, "", call),
        button("Decline", decline, "", call),
        call.allowable ? button(ALLOW, () => decide({ approve: true, for: "conversation" }), "", call) : "",
      ),
    );
  const edit = () => {
    const back = wayBack(body, choices);
    const field = h("textarea", { rows: 6, spellcheck: "false", class: "pause-input" });
    field.value = JSON.stringify(call.input, null, 2);
    const send = () => {
      const input = parsed(field.value);
      field.setCustomValidity(input ? "" : "These are no JSON arguments: write {…}.");
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
      argumentTable(call),
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
    h("h3", {}, "Waiting for a program to run ", h("code", {}, call.tool)),
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
  return [h("h3", { class: "pause-question" }, call.input.question), body];
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

const heading = (call) => h("h3", {}, "May it run ", h("code", {}, call.tool), "?");

const destroys = (call) => (call.effect === "destroys" ? h("p", { class: "pause-destroys" }, DESTROYS) : "");

const description = (text) => (text ? h("p", { class: "muted" }, text) : "");

const weight = (call) => (call.effect === "destroys" ? "danger" : "primary");

const buttons = (...all) => h("div", { class: "buttons" }, all);

/** `call`: named for those who hear the button alone. */
const button = (text, onclick, kind, call) =>
  h(
    "button",
    { type: "button", class: `button ${kind}`, "aria-label": `${text}: ${call.tool}`, onclick },
    text,
  );

function argumentTable({ tool, input }) {
  const entries = Object.entries(input ?? {});
  if (entries.length === 0) return h("p", { class: "muted" }, "Without arguments.");
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": `Arguments of ${tool}` },
    h(
      "table",
      { class: "pause-arguments" },
      h(
        "tbody",
        {},
        entries.map(([name, value]) =>
          h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, shown(value))),
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
