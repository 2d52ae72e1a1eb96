/** The chats that wait for the reader, in all conversations: a button above the list, and a dialog. */
import { close, show } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { moment } from "./format.js";
import { visible } from "./visible.js";

const NAME = "dualtrack.pauses";

export class PausesList {
  #api;
  #listener;
  #pauses = [];
  #isKnown = true; // whether the last reading succeeded
  #channel = globalThis.BroadcastChannel ? new BroadcastChannel(NAME) : null;

  /**
   * `listener`: nameOf(conversationId), its title if known; onDecided(conversationId), decided in another tab;
   * onListed(conversationIds).
   */
  constructor(api, listener) {
    this.#api = api;
    this.#listener = listener;
    byId("pauses").addEventListener("click", () => this.#open());
    this.#channel?.addEventListener("message", ({ data }) => {
      listener.onDecided(data);
      this.refresh();
    });
  }

  /** Reads them again. After an error the last ones stand; the conversation shows errors of its own. */
  async refresh() {
    const listed = await this.#api.pauses().catch(() => null);
    this.#isKnown = listed !== null;
    if (listed) this.#list(listed.pauses);
  }

  /** Reads them again if the last reading failed. */
  retry() {
    if (!this.#isKnown) this.refresh();
  }

  #list(pauses) {
    this.#pauses = pauses;
    byId("pauses").hidden = pauses.length === 0;
    byId("pauses").textContent = `Waiting for you: ${pauses.length}`;
    this.#listener.onListed(pauses.map((pause) => pause.conversation_id));
  }

  /** Tells the other tabs that something was decided. */
  decided(conversationId) {
    this.#channel?.postMessage(conversationId);
    return this.refresh();
  }

  #open() {
    const line = ({ conversation_id: conversation, chat_id: chat, calls, expires_at: expires }) =>
      h(
        "li",
        {},
        h(
          "a",
          { href: `#${conversation}/${chat}`, onclick: close },
          this.#listener.nameOf(conversation) || "A conversation",
        ),
        h(
          "p",
          { class: "fine muted" },
          `${calls.map((call) => visible(call.tool)).join(", ")}; until ${moment(expires)}`,
        ),
      );
    show("Waiting for you", h("ul", { class: "pause-list" }, this.#pauses.map(line)));
  }
}
