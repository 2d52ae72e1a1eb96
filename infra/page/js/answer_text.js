/** An answer's text. What draws Markdown is loaded with the first answer; until then the text is plain. */
let drawing = null; // the module, once it is there
let loading = null;

const SHARE = 4; // a part of the time at most that drawing takes while text comes in

/** Resolves when answers can be drawn at once; also if it cannot be loaded. */
export function ready() {
  loading ??= import("./markdown.js").then(
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
   * `whole`: nothing is coming after it. What is not whole may be drawn a little later, with what comes next.
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
