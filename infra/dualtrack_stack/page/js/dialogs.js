/** The one dialog of the page: records, credits, questions. The browser keeps the focus inside it. */
import { again, byId, h, icon } from "./dom.js";

const dialog = byId("dialog");
let opener = document.body; // what had the focus before
let turn = 0; // so that what comes late is not shown

byId("dialog-close").append(icon("close"));
byId("dialog-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

dialog.addEventListener("close", () => {
  turn += 1;
  giveBack();
});

/** The focus goes to what the opener was drawn again as. */
function giveBack() {
  const focused = document.activeElement; // what is in the dialog can have it for a moment longer
  if (opener.isConnected || (focused !== document.body && !dialog.contains(focused))) return;
  (again(opener) ?? byId("title")).focus();
}

/** Shows content under a title; a second call replaces the first. */
export function show(title, ...content) {
  const body = byId("dialog-body");
  turn += 1;
  byId("dialog-title").textContent = title;
  body.replaceChildren(...content.filter(Boolean));
  if (!dialog.open) {
    opener = document.activeElement;
    dialog.showModal();
  }
  body.scrollTop = 0;
  body.querySelector("[autofocus]")?.focus();
  if (!dialog.contains(document.activeElement)) body.focus(); // what had the focus was replaced
}

/** Shows that something is read; the result shows it, unless the dialog was closed. */
export function loading(title) {
  show(title, h("p", { class: "muted" }, "Loading…"));
  let mine = turn;
  return (...content) => {
    if (turn !== mine) return;
    show(title, ...content);
    mine = turn;
  };
}

export const close = () => dialog.close();

/** Asks for a text; resolves with the text or null. */
export function askText(title, label, value) {
  const field = h("input", { value, maxlength: 200, required: true, autofocus: true });
  return answer(title, [h("label", {}, label, field)], "Save", () => field.value.trim() || null);
}

/** Asks for confirmation; resolves with true or null. */
export function confirm(title, text, verb) {
  return answer(title, [h("p", {}, text)], verb, () => true, "danger");
}

/** Asks for confirmation by typing a word, so it cannot be given by mistake. Resolves with true or null. */
export function confirmWord(title, text, word, verb) {
  const field = h("input", {
    autocomplete: "off",
    autofocus: true,
    required: true,
    pattern: word,
    title: `Type ${word}`,
  });
  return answer(
    title,
    [h("p", {}, text), h("label", {}, `Type ${word} to continue`, field)],
    verb,
    () => field.value === word || null,
    "danger",
  );
}

function answer(title, content, verb, value, kind = "primary") {
  return new Promise((resolve) => {
    let outcome = null;
    const form = h(
      "form",
      {
        class: "dialog-form",
        onsubmit: (event) => {
          event.preventDefault();
          outcome = value();
          dialog.close();
        },
      },
      content,
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Cancel"),
        h("button", { class: `button ${kind}` }, verb),
      ),
    );
    dialog.addEventListener("close", () => resolve(outcome), { once: true });
    show(title, form);
    form.querySelector("input")?.select();
  });
}
