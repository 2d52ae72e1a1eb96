/** The view of a conversation's memory: both tracks, and their cost by question. Its drawing is loaded with it. */
import { byId, h } from "./dom.js";
import { load } from "./patience.js";

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
      const [{ drawMemory }, chart, full, summarised, offered] = await Promise.all([
        load(() => import("./memory_view.js")),
        load(() => import("./usage_chart.js")),
        this.#api.conversation(conversationId, "full"),
        this.#api.conversation(conversationId, "summarised"),
        this.#api.tools(),
      ]);
      if (drawing !== this.#drawn) return;
      drawMemory(element, full, summarised, offered);
      const chats = this.#conversation.exchanges.map((exchange) => exchange.chatId).filter(Boolean);
      const ended = await chart.chatsOfAll(this.#api, chats, signal);
      if (drawing === this.#drawn && ended.length > 0)
        element
          .querySelector(".overview")
          ?.after(chart.usageChart(chart.usageOf(ended), chart.costsOf(ended)));
    } catch (problem) {
      if (problem.name !== "AbortError")
        element.replaceChildren(h("p", { class: "problem" }, problem.message));
    }
  }
}
