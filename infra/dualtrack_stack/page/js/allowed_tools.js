/** The tools that the reader lets run in the open conversation unasked: a button that counts them, and the way back. */
import { close, show } from "./dialogs.js";
import { announce, byId, h } from "./dom.js";
import { marked, visible } from "./visible.js";

export class AllowedTools {
  #api;
  #listener;
  #conversation = null;

  /** `listener`: isOpen(conversationId); onTakenBack(conversationId). */
  constructor(api, listener) {
    this.#api = api;
    this.#listener = listener;
    byId("allowed").addEventListener("click", () => this.#open());
  }

  /** `conversation`: as the API shows it; null while none is stored. */
  show(conversation) {
    this.#conversation = conversation;
    const { length } = conversation?.allowed ?? [];
    byId("allowed").hidden = length === 0;
    byId("allowed").replaceChildren("Allowed", h("span", { class: "wide-only" }, " here"), `: ${length}`);
  }

  /** Reads them again, if that conversation is open: they may have changed. */
  async refresh(conversationId) {
    if (!conversationId || !this.#listener.isOpen(conversationId)) return;
    const conversation = await this.#api.conversationHead(conversationId).catch(() => null);
    if (conversation && this.#listener.isOpen(conversationId)) this.show(conversation);
  }

  #open() {
    const line = (tool) =>
      h(
        "li",
        { class: "allowed-tool" },
        h("code", {}, marked(tool)),
        h(
          "button",
          {
            type: "button",
            class: "button",
            "aria-label": `Take back: ${visible(tool)}`,
            onclick: (event) => this.#takeBack(tool, event.target),
          },
          "Take back",
        ),
      );
    show(
      "Allowed in this conversation",
      h(
        "p",
        { class: "muted" },
        "These tools run here without asking you. Forks ask again, and so does a tool that has changed.",
      ),
      h("ul", { class: "allowed-list" }, this.#conversation.allowed.map(line)),
    );
  }

  async #takeBack(tool, button) {
    const conversation = this.#conversation;
    button.disabled = true;
    try {
      await this.#api.disallow(conversation.conversation_id, tool);
    } catch (problem) {
      button.disabled = false;
      button.after(h("p", { class: "problem", role: "alert" }, problem.message));
      return;
    }
    const allowed = conversation.allowed.filter((other) => other !== tool);
    this.show({ ...conversation, allowed });
    this.#listener.onTakenBack(conversation.conversation_id);
    announce(`${visible(tool)} asks again.`);
    if (allowed.length > 0) this.#open();
    else close();
  }
}
