/**
 * The message field with its files, its send and its stop button. Each conversation has its draft.
 */
import { Attachments } from "./attachments.js";
import { byId, h } from "./dom.js";
import { draftOf, joined, keepDraft } from "./drafts.js";
import { excess, tooLong } from "./message.js";

const ANSWERING =
  "The answer is still being written. Your message stays here: send it when the answer is there, " +
  "or stop the answer first.";
const NO_TEXT = "Say what the files are for: they are sent along with a message.";

export class Composer {
  #field = byId("message");
  #send = byId("send");
  #stop = byId("stop");
  #running = false;
  #draftKey = "";
  #asked; // () => the conversation's questions, oldest first
  #recalled = 0; // how far back the question is that the field shows; 0 for none
  #told = ""; // the notice about the text, removed when the text changes
  #touch = matchMedia("(pointer: coarse)").matches;
  #attachments = new Attachments(
    (problem) => this.notice(problem),
    () => this.#keep(),
  );

  /** `onSend({text, files})`, `onStop()`, `asked()`: the conversation's questions, oldest first. */
  constructor({ onSend, onStop, asked }) {
    this.#asked = asked;
    byId("composer-hint").textContent = this.#touch ? "" : "Enter sends, Shift + Enter starts a new line";
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(onSend);
    });
    this.#field.addEventListener("keydown", (event) => {
      if (this.#recall(event)) event.preventDefault();
      if (!sends(event, this.#touch)) return;
      event.preventDefault();
      this.#submit(onSend);
    });
    this.#field.addEventListener("input", () => this.#changed());
    this.#stop.addEventListener("click", () => {
      this.#stop.disabled = true;
      onStop();
    });
    this.draftKey = "";
  }

  /** Arrow up in an empty field shows the last question, then earlier ones; arrow down goes back. */
  #recall({ key, shiftKey, altKey, ctrlKey, metaKey }) {
    const step = { ArrowUp: 1, ArrowDown: -1 }[key];
    if (!step || shiftKey || altKey || ctrlKey || metaKey) return false;
    const asked = this.#asked();
    if (!this.#recalled || this.#field.value !== asked.at(-this.#recalled)) this.#recalled = 0;
    const next = this.#recalled + step;
    if ((this.#field.value && !this.#recalled) || next < 0 || next > asked.length) return false;
    this.#recalled = next;
    this.#field.value = next ? asked.at(-next) : "";
    this.#changed();
    return true;
  }

  #submit(onSend) {
    const text = this.#field.value.trim();
    const { files } = this.#attachments;
    const problem = this.#problem(text, files);
    if (problem) this.#tell(problem);
    if (problem || !text) return;
    this.clear();
    onSend({ text, files });
  }

  #problem(text, files) {
    if (!text) return files.length > 0 && NO_TEXT;
    if (excess(text)) return [tooLong(text), " Shorten it, or ", this.#asFile(), "."];
    return this.#running && ANSWERING;
  }

  /** A button that turns a text that is too long for a message into a file. */
  #asFile() {
    const attach = async () => {
      const text = this.#field.value;
      const name = "message.txt";
      if (!(await this.#attachments.add([new File([text], name, { type: "text/plain" })]))) return;
      this.#field.value = "";
      this.#changed();
      this.focus();
    };
    return h("button", { type: "button", class: "link-button", onclick: attach }, "send it as a file");
  }

  #tell(problem) {
    this.notice(problem);
    this.#told = problem;
  }

  #changed() {
    this.#fit();
    this.#keep();
    if (excess(this.#field.value)) this.#tell(this.#problem(this.#field.value.trim(), []));
    else if (this.#told) this.notice("");
  }

  /** While a chat runs, it can be stopped and the next message can be written. */
  set running(running) {
    const focused = document.activeElement === this.#stop || document.activeElement === this.#send;
    this.#running = running;
    this.#stop.disabled = false;
    this.#stop.hidden = !running;
    this.#send.hidden = running;
    if (this.#told === ANSWERING) this.notice("");
    if (focused) this.takeFocus();
  }

  /** After the control that had the focus is gone; not on a touch screen, where it would open the keyboard. */
  takeFocus() {
    if (!this.#touch) this.focus();
  }

  /** The conversation whose draft is shown; empty for a new one. */
  set draftKey(draftKey) {
    this.#draftKey = draftKey;
    this.#show(draftOf(draftKey));
  }

  /**
   * The new conversation now has an id; text written since its first message moves with it.
   */
  moveTo(draftKey) {
    const draft = this.#draft;
    keepDraft(this.#draftKey, { text: "", files: [] });
    this.#draftKey = draftKey;
    keepDraft(draftKey, draft);
  }

  get #draft() {
    return { text: this.#field.value, files: this.#attachments.files };
  }

  #keep() {
    keepDraft(this.#draftKey, this.#draft);
  }

  #show({ text, files }) {
    this.#field.value = text;
    this.#attachments.files = files;
    this.#fit();
  }

  clear() {
    this.#show({ text: "", files: [] });
    this.#keep();
    this.notice("");
  }

  /** Puts a message back that could not be sent, before the text written since. */
  restore(message, draftKey = this.#draftKey) {
    keepDraft(draftKey, joined(message, draftOf(draftKey)));
    if (draftKey === this.#draftKey) this.#show(draftOf(draftKey));
  }

  fill(text) {
    this.#field.value = text;
    this.#changed();
    this.focus();
  }

  focus() {
    this.#field.focus({ preventScroll: true });
  }

  /** Shows a problem and what to do, as text or elements. An empty text removes it. */
  notice(...content) {
    const shown = content.flat().some(Boolean);
    this.#told = "";
    byId("notice").replaceChildren(shown ? h("div", { class: "notice" }, content) : "");
  }

  #fit() {
    fit(this.#field, 240);
  }
}

/** Whether a key sends: on a touch keyboard Enter begins a new line. */
export function sends(event, touch) {
  return event.key === "Enter" && (event.ctrlKey || event.metaKey || (!event.shiftKey && !touch));
}

/** Makes a field as high as its text, up to a limit in pixels. */
export function fit(field, most) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, most)}px`;
}
