/** An answer's text. The Markdown modules are loaded with the first answer; until then the text is plain. */
import { load } from "./patience.js";

let drawing = null; // the module, once loaded
let loading = null;

const SHARE = 4; // pause after a drawing, as a multiple of its time

/** Resolves when answers can be drawn at once, or when loading has failed. */
export function ready() {
  loading ??= load(() => import("./markdown.js")).then(
    (module) => {
      drawing = module;
    },
    () => {
      loading = null; // plain for now; the next answer tries again
    },
  );
  return loading;
}

export class AnswerText {
  #element;
  #view = null;
  #text = "";
  #whole = false;
  #timer = 0;
  #next = 0; // when it may draw again, on the page's clock

  constructor(element) {
    this.#element = element;
    if (!drawing) ready().then(() => this.#text && this.#draw());
  }

  /**
   * `whole`: the text is complete. Incomplete text may be drawn a little later, with the next piece.
   */
  update(text, whole = true) {
    this.#text = text;
    this.#whole = whole;
    const wait = this.#next - performance.now();
    if (whole || wait <= 0) this.#draw();
    else this.#timer ||= setTimeout(() => this.#draw(), wait);
  }

  #draw() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const began = performance.now();
    this.#show();
    const ended = performance.now();
    this.#next = ended + SHARE * (ended - began);
  }

  #show() {
    this.#element.classList.toggle("plain", !drawing);
    if (!drawing) {
      this.#element.textContent = this.#text;
      return;
    }
    if (!this.#view) this.#element.replaceChildren();
    this.#view ??= new drawing.MarkdownView(this.#element);
    this.#view.update(this.#text, this.#whole);
  }
}
