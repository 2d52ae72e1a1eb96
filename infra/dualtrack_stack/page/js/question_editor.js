/**
 * An editor that replaces a question: its text, its files, send and cancel. The text is kept as a draft.
 */
import { fit, sends } from "./composer.js";
import { h, icon } from "./dom.js";
import { draftOf, keepDraft } from "./drafts.js";
import { nameOf } from "./file_chip.js";
import { bytes } from "./format.js";
import { excess, tooLong } from "./message.js";

const NOTE = "Sending begins a new branch here. This one stays as it is.";

export class QuestionEditor {
  element;
  #draftKey;
  #files;
  #field;
  #fileList = h("ul", { class: "files", "aria-label": "Attachments" });
  #problem = h("p", { class: "problem", role: "alert", hidden: true });
  #send = h("button", { class: "button primary" }, "Send");
  #listener;
  #touch = matchMedia("(pointer: coarse)").matches;

  /**
   * `draftKey`: its draft's key. `listener`: onSend({text, files}) returns a promise that rejects if it could
   * not be sent, onCancel().
   */
  constructor(draftKey, { messageId, question, attachments }, listener) {
    this.#draftKey = draftKey;
    this.#listener = listener;
    this.#files = attachments;
    const number = messageId.slice(1);
    const note = `edit-note-${messageId}`;
    this.#field = h("textarea", {
      rows: "1",
      "aria-label": `Question ${number}, edited`,
      "aria-describedby": note,
    });
    this.#field.value = draftOf(draftKey).text || question;
    this.element = h(
      "form",
      { class: "question-editor", "aria-label": `Edit question ${number}` },
      this.#field,
      this.#fileList,
      h("p", { id: note, class: "fine muted" }, NOTE),
      this.#problem,
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", class: "button", onclick: () => this.#discard() }, "Cancel"),
        this.#send,
      ),
    );
    this.#wire();
    this.#drawFiles();
  }

  #wire() {
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#field.addEventListener("input", () => {
      fit(this.#field, 400);
      this.#say("");
      keepDraft(this.#draftKey, { text: this.#field.value, files: [] });
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape")
        this.#listener.onCancel(); // the draft stays
      else if (event.target === this.#field && sends(event, this.#touch)) {
        event.preventDefault();
        this.#submit();
      }
    });
  }

  /** To be called once it is on the page. */
  focus() {
    fit(this.#field, 400);
    this.#field.focus();
    this.#field.setSelectionRange(this.#field.value.length, this.#field.value.length);
  }

  async #submit() {
    const text = this.#field.value.trim();
    if (this.#send.disabled) return;
    if (!text) return this.#say("A question needs text.");
    if (excess(text)) return this.#say(tooLong(text));
    this.#working(true);
    try {
      await this.#listener.onSend({ text, files: this.#files });
      this.#forget();
    } catch (problem) {
      this.#working(false);
      this.#say(`${problem.message} Nothing is lost: your text stays here.`);
    }
  }

  #working(working) {
    this.#send.disabled = working;
    this.#field.readOnly = working;
    this.#send.textContent = working ? "Sending…" : "Send";
  }

  #discard() {
    this.#forget();
    this.#listener.onCancel();
  }

  #forget() {
    keepDraft(this.#draftKey, { text: "", files: [] });
  }

  #say(text) {
    this.#problem.textContent = text;
    this.#problem.hidden = text === "";
  }

  #drawFiles() {
    this.#fileList.hidden = this.#files.length === 0;
    this.#fileList.replaceChildren(...this.#files.map((file) => this.#item(file)));
  }

  #item(file) {
    const name = nameOf(file);
    const remove = () => {
      this.#files = this.#files.filter((other) => other !== file);
      this.#drawFiles();
      this.#field.focus();
    };
    return h(
      "li",
      { class: "file" },
      icon("file"),
      h("span", { class: "file-name" }, name),
      h("span", { class: "muted" }, bytes(file.size)),
      h(
        "button",
        { type: "button", class: "icon-button small", "aria-label": `Remove ${name}`, onclick: remove },
        icon("close"),
      ),
    );
  }
}
