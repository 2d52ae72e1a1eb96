/** An answer's text. What draws Markdown is loaded with the first answer; until then the text is plain. */
let drawing = null; // the module, once it is there
let loading = null;

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

  constructor(element) {
    this.#element = element;
    if (!drawing) ready().then(() => this.#text && this.#draw());
  }

  /** `whole`: nothing is coming after it. */
  update(text, whole = true) {
    this.#text = text;
    this.#whole = whole;
    this.#draw();
  }

  #draw() {
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
