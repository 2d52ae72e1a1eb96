/**
 * The search field above the list of conversations.
 *
 * One search is on its way at a time: what has been typed meanwhile is searched for when its answer is there.
 * So a slow service is not asked for every letter, a quick one is, and nothing waits for a clock.
 */
export class ConversationSearch {
  #field;
  #search;
  #busy = false;

  /** `search(text)`: shows what is found; a promise. */
  constructor(field, search) {
    this.#field = field;
    this.#search = search;
    field.addEventListener("input", () => this.#run());
    field.addEventListener("keydown", (event) => event.key === "Escape" && field.value && this.#clear(event));
  }

  get text() {
    return this.#field.value.trim();
  }

  focus() {
    this.#field.focus();
    this.#field.select();
  }

  #clear(event) {
    event.stopPropagation(); // which would close the drawer
    event.preventDefault();
    this.#field.value = "";
    this.#run();
  }

  async #run() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      let searched;
      do {
        searched = this.text;
        await this.#search(searched);
      } while (searched !== this.text);
    } finally {
      this.#busy = false;
    }
  }
}
