/** The notice that a chat runs in the conversation or waits for a decision, with buttons to follow or stop it. */
import { h } from "./dom.js";

const WAITS =
  "This conversation waits for your decision. Decide, or stop that chat, and send your message again.";

/**
 * `refusal`: the API's 409; `follow(chatId)` shows the conversation with that chat; `notice(...)` shows a
 * notice.
 */
export async function tellBusy(api, refusal, conversationId, { follow, notice }) {
  const isPaused = refusal.code === "conversation_paused";
  const chatId = await runningChat(api, refusal, conversationId);
  if (!chatId)
    return notice("A chat was running in this conversation and has just ended. Send your message again.");
  const stop = async () => {
    try {
      await api.cancelChat(chatId);
      follow(chatId);
    } catch (problem) {
      notice(problem.message);
    }
  };
  const button = (text, act) => h("button", { type: "button", class: "link-button", onclick: act }, text);
  notice(
    h("p", {}, isPaused ? WAITS : ["A chat is still running in this conversation: ", h("code", {}, chatId)]),
    h(
      "p",
      { class: "notice-actions" },
      button(isPaused ? "Decide" : "Follow it", () => follow(chatId)),
      button("Stop it", stop),
    ),
  );
}

/** The chat in the refusal, else the conversation's running chat; empty if it has ended. */
async function runningChat(api, { detail }, conversationId) {
  if (detail.chat_id) return detail.chat_id;
  const conversation = await api.conversationHead(conversationId).catch(() => null);
  return conversation?.running_chat_id ?? "";
}
