/** The message field with its files, its send and its stop button. */
import { Attachments } from "./attachments.js";
import { byId, h } from "./dom.js";

export class Composer {
  #field = byId("message");
  #send = byId("send");
  #stop = byId("stop");
  #running = false;
  #touch = matchMedia("(pointer: coarse)").matches;
  #attachments = new Attachments((problem) => this.notice(problem));

  /** `onSend({text, files})`, `onStop()`. */
  constructor({ onSend, onStop }) {
    byId("composer-hint").textContent = this.#touch ? "" : "Enter sends, Shift + Enter starts a new line";
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(onSend);
    });
    this.#field.addEventListener("keydown", (event) => {
      // on a touch keyboard Enter is the only way to a new line; while a word is composed it accepts it
      const sends = event.key === "Enter" && !event.isComposing && (event.ctrlKey || event.metaKey || (!event.shiftKey && !this.#touch));
      if (!sends) return;
      event.preventDefault();
      this.#submit(onSend);
    });
    this.#field.addEventListener("input", () => this.#fit());
    this.#stop.addEventListener("click", () => {
      this.#stop.disabled = true;
      onStop();
    });
  }

  #submit(onSend) {
    const text = this.#field.value.trim();
    if (!text || this.#running) return;
    const { files } = this.#attachments;
    this.clear();
    onSend({ text, files });
  }

  /** While a chat runs it can be stopped, and the next message can be written. */
  set running(running) {
    const focused = document.activeElement === this.#stop || document.activeElement === this.#send;
    this.#running = running;
    this.#stop.disabled = false;
    this.#stop.hidden = !running;
    this.#send.hidden = running;
    if (focused && !this.#touch) this.focus(); // there it would open the keyboard
  }

  get isEmpty() {
    return this.#field.value === "" && this.#attachments.files.length === 0;
  }

  clear() {
    this.#field.value = "";
    this.#attachments.files = [];
    this.notice("");
    this.#fit();
  }

  /** Puts a message back that could not be sent. */
  restore({ text, files }) {
    if (!this.isEmpty) return;
    this.#field.value = text;
    this.#attachments.files = files;
    this.#fit();
  }

  fill(text) {
    this.#field.value = text;
    this.#fit();
    this.focus();
  }

  focus() {
    this.#field.focus({ preventScroll: true });
  }

  /** Says what is wrong, with what to do; text or elements. An empty text takes it away. */
  notice(...content) {
    const shown = content.some((one) => one);
    byId("notice").replaceChildren(shown ? h("div", { class: "notice" }, content) : "");
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${Math.min(this.#field.scrollHeight, 240)}px`;
  }
}
