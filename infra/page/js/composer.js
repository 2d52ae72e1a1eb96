/**
 * The message field with its files, its send and its stop button. What is written is kept for each
 * conversation.
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
  #told = ""; // the notice that speaks of the text, and goes when the text changes
  #touch = matchMedia("(pointer: coarse)").matches;
  #attachments = new Attachments(
    (problem) => this.notice(problem),
    () => this.#keep(),
  );

  /** `onSend({text, files})`, `onStop()`. */
  constructor({ onSend, onStop }) {
    byId("composer-hint").textContent = this.#touch ? "" : "Enter sends, Shift + Enter starts a new line";
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(onSend);
    });
    this.#field.addEventListener("keydown", (event) => {
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

  /** A button that makes a file of a text that is too long for a message. */
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

  /** While a chat runs it can be stopped, and the next message can be written. */
  set running(running) {
    const focused = document.activeElement === this.#stop || document.activeElement === this.#send;
    this.#running = running;
    this.#stop.disabled = false;
    this.#stop.hidden = !running;
    this.#send.hidden = running;
    if (this.#told === ANSWERING) this.notice("");
    if (focused && !this.#touch) this.focus(); // there it would open the keyboard
  }

  /** Whose message is written: a conversation's; empty is a new one's. Each has its draft. */
  set draftKey(draftKey) {
    this.#draftKey = draftKey;
    this.#show(draftOf(draftKey));
  }

  /**
   * The new conversation, whose first message was sent, has an id now; what has been written since goes with
   * it.
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

  /** Puts a message back that could not be sent, before what has been written since. */
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

  /** Says what is wrong, with what to do; text or elements. An empty text takes it away. */
  notice(...content) {
    const shown = content.flat().some(Boolean);
    this.#told = "";
    byId("notice").replaceChildren(shown ? h("div", { class: "notice" }, content) : "");
  }

  #fit() {
    fit(this.#field, 240);
  }
}

/**
 * Whether a key sends: on a touch keyboard Enter is the only way to a new line; while a word is composed it
 * accepts it.
 */
export function sends(event, touch) {
  return (
    event.key === "Enter" &&
    !event.isComposing &&
    (event.ctrlKey || event.metaKey || (!event.shiftKey && !touch))
  );
}

/** Makes a field as high as its text, up to so many pixels. */
export function fit(field, most) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, most)}px`;
}
