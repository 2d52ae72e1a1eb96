/** Keeps the newest text in view, unless the reader has scrolled up; then a button leads back. */
import { byId, icon } from "./dom.js";

const NEAR = 64; // pixels from the end that still count as "at the end"

export class FollowText {
  #thread = byId("thread");
  #button = byId("latest");
  #following = true;

  constructor() {
    this.#button.prepend(icon("down"));
    this.#button.addEventListener("click", () => {
      this.toEnd();
      this.#thread.focus({ preventScroll: true });
    });
    this.#thread.addEventListener("scroll", () => this.#look(), { passive: true });
    const grown = new ResizeObserver(() => this.#keep());
    grown.observe(byId("exchanges"));
    grown.observe(this.#thread);
  }

  toEnd() {
    this.#following = true;
    this.#thread.scrollTop = this.#thread.scrollHeight;
    this.#button.hidden = true;
  }

  get #distance() {
    return this.#thread.scrollHeight - this.#thread.scrollTop - this.#thread.clientHeight;
  }

  #look() {
    this.#following = this.#distance < NEAR;
    this.#button.hidden = this.#following;
  }

  #keep() {
    if (this.#following) this.toEnd();
    else this.#button.hidden = this.#distance < NEAR;
  }
}
