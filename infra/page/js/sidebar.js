/** The list of conversations: open, rename, delete; a drawer on narrow screens. */
import { agentName } from "./agents.js";
import { askText, confirm } from "./dialogs.js";
import { byId, h, icon } from "./dom.js";

const UNTITLED = "New conversation";

export const titleOf = (conversation) => conversation.title || UNTITLED;

export class Sidebar {
  #api;
  #listener;
  #items = [];
  #cursor = "";
  #current = "";
  #namesAgents = false;

  /** `listener`: onRenamed(conversation), onDeleted(id), onProblem(problem). */
  constructor(api, listener) {
    this.#api = api;
    this.#listener = listener;
    byId("side-open").append(icon("menu"));
    byId("side-close").append(icon("close"));
    byId("side-open").addEventListener("click", () => this.#drawer(true));
    byId("side-close").addEventListener("click", () => this.#drawer(false));
    byId("veil").addEventListener("click", () => this.#drawer(false));
    byId("older").addEventListener("click", () => this.#load(this.#cursor));
    byId("shell").addEventListener("keydown", (event) => event.key === "Escape" && this.#drawer(false));
    this.#narrow.addEventListener("change", () => this.#drawer(false));
    this.#drawer(false);
  }

  #narrow = matchMedia("(max-width: 52rem)");

  #drawer(open) {
    const narrow = this.#narrow.matches;
    const wasOpen = byId("shell").classList.contains("side-is-open");
    byId("shell").classList.toggle("side-is-open", open && narrow);
    byId("side").inert = narrow && !open;
    byId("main").inert = narrow && open;
    byId("side-open").setAttribute("aria-expanded", String(open && narrow));
    if (!narrow) return;
    if (open) byId("side-close").focus();
    else if (wasOpen) byId("side-open").focus();
  }

  close() {
    this.#drawer(false);
  }

  /** The newest page again; older ones that were shown are asked for anew. */
  async refresh() {
    await this.#load("");
  }

  async #load(cursor) {
    try {
      const page = await this.#api.conversations(cursor);
      this.#items = cursor ? [...this.#items, ...page.conversations] : page.conversations;
      this.#cursor = page.cursor ?? "";
      this.#draw();
    } catch (problem) {
      this.#listener.onProblem(problem);
    }
  }

  /** Whether each conversation says which agent it is with. */
  set namesAgents(named) {
    this.#namesAgents = named;
    this.#draw();
  }

  set current(conversationId) {
    this.#current = conversationId;
    this.#draw();
  }

  find(conversationId) {
    return this.#items.find((one) => one.conversation_id === conversationId);
  }

  #draw() {
    byId("older").hidden = this.#cursor === "";
    const focused = document.activeElement?.closest?.("#conversations a")?.getAttribute("href");
    byId("conversations").replaceChildren(...this.#items.map((one) => this.#item(one)));
    if (focused) byId("conversations").querySelector(`a[href="${focused}"]`)?.focus();
  }

  #item(one) {
    const title = titleOf(one);
    return h(
      "li",
      { class: "conversation" },
      h("a", { href: `#${one.conversation_id}`, "aria-current": one.conversation_id === this.#current ? "page" : null, title, onclick: () => this.close() }, title, this.#namesAgents ? h("span", { class: "agent-of" }, agentName(one.profile)) : ""),
      h("span", { class: "conversation-actions" },
        h("button", { type: "button", class: "icon-button small", "aria-label": `Rename ${title}`, onclick: () => this.#rename(one) }, icon("pencil")),
        h("button", { type: "button", class: "icon-button small", "aria-label": `Delete ${title}`, onclick: () => this.#delete(one) }, icon("bin")),
      ),
    );
  }

  async #rename(one) {
    const title = await askText("Rename the conversation", "Title", one.title);
    if (!title) return;
    try {
      this.#listener.onRenamed(await this.#api.renameConversation(one.conversation_id, title));
      await this.refresh();
    } catch (problem) {
      this.#listener.onProblem(problem);
    }
  }

  async #delete(one) {
    if (!(await confirm("Delete the conversation?", `“${titleOf(one)}” and every record of it will be gone. This cannot be undone.`, "Delete"))) return;
    try {
      await this.#api.deleteConversation(one.conversation_id);
      this.#listener.onDeleted(one.conversation_id);
      await this.refresh();
    } catch (problem) {
      this.#listener.onProblem(problem);
    }
  }
}
