/** The view of a conversation's memory: both tracks, and their cost by question. */
import { byId, h } from "./dom.js";
import { drawMemory } from "./memory_view.js";
import { chatsOfAll, costsOf, usageChart, usageOf } from "./usage_chart.js";

export class MemoryPanel {
  #api;
  #conversation;
  #drawn = 0;

  constructor(api, conversation) {
    this.#api = api;
    this.#conversation = conversation;
  }

  async draw() {
    const { conversationId, signal } = this.#conversation;
    const drawing = ++this.#drawn;
    const element = byId("memory-view");
    try {
      const [full, summarised, offered] = await Promise.all([
        this.#api.conversation(conversationId, "full"),
        this.#api.conversation(conversationId, "summarised"),
        this.#api.tools(),
      ]);
      if (drawing !== this.#drawn) return;
      drawMemory(element, full, summarised, offered);
      const chats = this.#conversation.exchanges.map((exchange) => exchange.chatId).filter(Boolean);
      const ended = await chatsOfAll(this.#api, chats, signal);
      if (drawing === this.#drawn && ended.length > 0)
        element.querySelector(".overview")?.after(usageChart(usageOf(ended), costsOf(ended)));
    } catch (problem) {
      if (problem.name !== "AbortError")
        element.replaceChildren(h("p", { class: "problem" }, problem.message));
    }
  }
}
