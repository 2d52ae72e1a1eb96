/**
 * The search field above the list of conversations.
 *
 * One search runs at a time; when it ends, the text typed meanwhile is searched. So a slow service is not
 * called for every letter, a quick one is, and no timer is needed.
 */
export class ConversationSearch {
  #field;
  #search;
  #running = null;

  /** `search(text)`: shows the results; returns a promise. Enter and arrow down go to the first link in `results`. */
  constructor(field, results, search) {
    this.#field = field;
    this.#search = search;
    field.addEventListener("input", () => this.#run());
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && field.value) this.#clear(event);
      if (event.key === "Enter" || event.key === "ArrowDown") this.#leave(event, results);
    });
  }

  get text() {
    return this.#field.value.trim();
  }

  focus() {
    this.#field.focus();
    this.#field.select();
  }

  async #leave(event, results) {
    event.preventDefault();
    await this.#running; // the list may be an earlier text's
    results.querySelector("a")?.focus();
  }

  #clear(event) {
    event.stopPropagation(); // which would close the drawer
    event.preventDefault();
    this.#field.value = "";
    this.#run();
  }

  #run() {
    this.#running ??= this.#searchAll().finally(() => {
      this.#running = null;
    });
  }

  async #searchAll() {
    let searched;
    do {
      searched = this.text;
      await this.#search(searched);
    } while (searched !== this.text);
  }
}
