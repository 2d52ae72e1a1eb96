/** Parts of the panels that list what a reader has made: actions, a question before one, a secret shown once. */
import { copy } from "./copy.js";
import { h } from "./dom.js";

/** A button of one of several items, named after its item. */
export const action = (text, name, onclick) =>
  h("button", { type: "button", class: "link-button", "aria-label": `${text} ${name}`, onclick }, text);

/** Asks in the place of an item's actions whether to do something. */
export function sure(text, verb, back, act) {
  return h(
    "div",
    { role: "group", "aria-label": verb },
    h("p", {}, text),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", class: "button", onclick: back }, "Cancel"),
      h("button", { type: "button", class: "button danger", "data-focus": true, onclick: act }, verb),
    ),
  );
}

/** A secret with a button that copies it. */
export function shownOnce(label, secret) {
  const field = h("input", { readonly: true, value: secret, "data-focus": true, spellcheck: "false" });
  field.addEventListener("focus", () => field.select());
  return h(
    "div",
    { class: "shown-once" },
    h("label", {}, label, field),
    h(
      "div",
      { class: "buttons" },
      h(
        "button",
        { type: "button", class: "button primary", onclick: (event) => copy(event.currentTarget, secret) },
        "Copy",
      ),
    ),
  );
}

/**
 * A form that sends what was entered; what the API refuses is said below it, and stays to be corrected. `send(form)`
 * resolves once it is done.
 */
export function sending(send, ...content) {
  const refusal = h("div", { role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    const { currentTarget: form, submitter } = event;
    if (submitter.getAttribute("aria-disabled")) return;
    submitter.setAttribute("aria-disabled", "true");
    refusal.replaceChildren();
    try {
      await send(form);
    } catch (problem) {
      refusal.replaceChildren(h("p", { class: "problem" }, problem.message));
    } finally {
      submitter.removeAttribute("aria-disabled");
    }
  };
  return h("form", { class: "dialog-form", onsubmit: submit }, content, refusal);
}

/** Puts the focus on what asks for it in an element, else on the element. */
export const focusIn = (element) => (element.querySelector("[data-focus]") ?? element).focus();
