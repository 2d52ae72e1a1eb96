/** Keeps the newest text in view, unless the reader has scrolled up; then a button scrolls back. */
import { byId, icon } from "./dom.js";

const NEAR = 64; // pixels from the end that still count as "at the end"

export class FollowText {
  #thread = byId("thread");
  #button = byId("latest");
  #following = true;
  #top = 0;

  constructor() {
    this.#button.prepend(icon("down"));
    this.#button.addEventListener("click", () => {
      this.toEnd();
      this.#thread.focus({ preventScroll: true });
    });
    this.#thread.addEventListener("scroll", () => this.#look(), { passive: true });
    const grown = new ResizeObserver(() => this.#keep());
    grown.observe(byId("exchanges"));
    grown.observe(byId("next-branches"));
    grown.observe(this.#thread);
    this.toEnd();
  }

  toEnd() {
    this.#set(true);
    this.#thread.scrollTop = this.#thread.scrollHeight;
    this.#top = this.#thread.scrollTop;
  }

  /** Scrolls to a passage and stays there. */
  to(element) {
    this.#set(false);
    element.scrollIntoView({ block: "start" });
    this.#top = this.#thread.scrollTop;
    if (this.#distance < NEAR) this.#set(true);
  }

  get #distance() {
    return this.#thread.scrollHeight - this.#thread.scrollTop - this.#thread.clientHeight;
  }

  /** While it follows, the browser's scroll anchoring must not scroll up. */
  #set(following) {
    this.#following = following;
    this.#button.hidden = following;
    this.#thread.classList.toggle("following", following);
  }

  #look() {
    // text that grows between a scroll and its event moves the end; only the reader scrolls up
    const { scrollTop } = this.#thread;
    if (this.#distance < NEAR) this.#set(true);
    else if (scrollTop < this.#top) this.#set(false);
    this.#top = scrollTop;
  }

  #keep() {
    if (this.#following) this.toEnd();
    else if (this.#distance < NEAR) this.#set(true);
  }
}
