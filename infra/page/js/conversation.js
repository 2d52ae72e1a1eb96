/**
 * The open conversation: its exchanges, the chat that runs in it, and what the reader does with them.
 */
import { Refusal, Unreachable } from "./api.js";
import { encoded } from "./attachments.js";
import { byId } from "./dom.js";
import { follow } from "./events.js";
import { admitted, ask, fromRecords, isOpen, reduce, withChat } from "./exchange.js";
import { ExchangeView, tick } from "./exchange_view.js";
import { chatsOf, remember } from "./remembered.js";

const ATTEMPTS = 3;
const TICK = 200;
const CHATS_SHOWN = 20; // chat objects fetched for the figures of past answers

export class Conversation {
  conversationId = "";
  #api;
  #files;
  #listener;
  #list = byId("exchanges");
  #views = [];
  #running = null;
  #opened = new AbortController();

  /** `listener`: onRunning(boolean), onAdmitted(chat), onAnswered(exchange), onEnded(exchange), onCredits(number), onRefused(problem, message), onEmpty(boolean). */
  constructor(api, files, listener) {
    this.#api = api;
    this.#files = files;
    this.#listener = listener;
    setInterval(() => this.#running && tick(), TICK);
  }

  get runningChat() {
    return this.#running;
  }

  get exchanges() {
    return this.#views.map((view) => view.exchange);
  }

  exchangeOf(element) {
    return this.#views.find((view) => view.element.contains(element))?.exchange;
  }

  /** An empty conversation, which begins with its first message. */
  clear() {
    this.#opened.abort();
    this.#opened = new AbortController();
    this.conversationId = "";
    this.#views = [];
    this.#list.replaceChildren();
    this.#files.forget();
    this.#setRunning(null);
    this.#listener.onEmpty(true);
  }

  /** Shows a stored conversation and goes on with the chat that runs in it. Throws what the API says. */
  async open(conversationId, chatId = "") {
    this.clear();
    this.conversationId = conversationId;
    this.#listener.onEmpty(false);
    const { signal } = this.#opened;
    const conversation = await this.#api.conversation(conversationId, "full", signal);
    const known = chatsOf(conversationId);
    const exchanges = fromRecords(conversation.records).map((one) => ({ ...one, chatId: one.chatId || known[one.messageId] || "" }));
    for (const exchange of exchanges) this.#add(exchange);
    this.#listener.onEmpty(exchanges.length === 0);
    const last = this.#views.at(-1);
    if (last && isOpen(last.exchange)) this.#resume(last, last.exchange.chatId || chatId, signal);
    this.#addFigures(signal).then(() => this.#files.fill(this.#list, conversationId, signal));
    this.#files.fill(this.#list, conversationId, signal);
    return conversation;
  }

  #add(exchange) {
    const view = new ExchangeView(exchange);
    this.#views.push(view);
    this.#list.append(view.element);
    return view;
  }

  /** Starts from the first event: the page knows nothing of the chat but its question. */
  async #resume(view, chatId, signal) {
    if (!chatId) {
      view.update({ ...view.exchange, status: "failed", error: { message: "This question has no answer yet, or its chat was started elsewhere." } });
      return;
    }
    const { question, attachments, messageId } = view.exchange;
    view.update({ ...ask(question, attachments), messageId, chatId, status: "running" });
    await this.#follow(view, chatId, signal);
  }

  async #addFigures(signal) {
    const past = this.#views.filter(({ exchange }) => exchange.chatId && !isOpen(exchange)).slice(-CHATS_SHOWN);
    for (const view of past.reverse()) {
      try {
        view.update(withChat(view.exchange, await this.#api.chat(view.exchange.chatId, signal)));
      } catch (problem) {
        if (!(problem instanceof Refusal)) return;
      }
    }
  }

  /**
   * Sends a message: a lost connection is tried again under the same key, so nothing is asked twice.
   *
   * `profile` is the agent that a new conversation begins with; one that has begun keeps its own.
   */
  async send(message, profile = "") {
    const { signal } = this.#opened;
    const view = this.#add(ask(message.text, message.files));
    const { conversationId } = this;
    this.#setRunning({ view, chatId: "" });
    this.#listener.onEmpty(false);
    try {
      const body = { message: message.text };
      if (conversationId) body.conversation_id = conversationId;
      else if (profile) body.profile = profile;
      if (message.files.length > 0) body.attachments = await encoded(message.files);
      const chat = await this.#admit(body);
      remember(chat.conversation_id, chat.message_id, chat.chat_id);
      if (signal.aborted) return; // the reader is elsewhere; the chat goes on and will be found again
      this.conversationId = chat.conversation_id;
      view.update(admitted(view.exchange, chat));
      this.#listener.onAdmitted(chat);
      if (this.#running?.stopWanted) this.#cancel(view, chat.chat_id);
      await this.#follow(view, chat.chat_id, signal);
    } catch (problem) {
      if (signal.aborted) return;
      this.#takeBack(view);
      this.#listener.onRefused(problem, message);
    }
  }

  async #admit(body) {
    const key = crypto.randomUUID();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#api.startChat(body, key);
      } catch (problem) {
        const passing = problem instanceof Unreachable || problem.status === 503;
        if (!passing || attempt === ATTEMPTS) throw problem;
        await new Promise((resolve) => setTimeout(resolve, 400 * attempt));
      }
    }
  }

  #takeBack(view) {
    view.element.remove();
    this.#views = this.#views.filter((one) => one !== view);
    this.#setRunning(null);
    this.#listener.onEmpty(this.#views.length === 0 && !this.conversationId);
  }

  async #follow(view, chatId, signal) {
    this.#setRunning({ view, chatId });
    const onEvent = (event) => this.#accept(view, event);
    const onTrouble = (trouble) => view.exchange.trouble !== trouble && view.update({ ...view.exchange, trouble });
    try {
      await follow(this.#api, chatId, { signal, onEvent, onTrouble });
    } catch (problem) {
      if (signal.aborted) return;
      await this.#settle(view, chatId, problem);
    }
  }

  /** The events are gone (24 hours after the end), or never were: the chat object tells the end. */
  async #settle(view, chatId, problem) {
    try {
      view.update(withChat(view.exchange, await this.#api.chat(chatId)));
    } catch {
      view.update({ ...view.exchange, status: "failed", error: { message: problem.message } });
    }
    this.#setRunning(null);
  }

  #accept(view, event) {
    const next = reduce(view.exchange, event);
    view.update(next);
    if (event.event === "credits") this.#listener.onCredits(event.data.available);
    if (event.event === "answer") this.#listener.onAnswered(next);
    if (!isOpen(next)) this.#setRunning(null);
    if (event.event === "done" || event.event === "error") this.#listener.onEnded(next);
  }

  stop() {
    if (!this.#running) return;
    const { view, chatId } = this.#running;
    if (chatId) this.#cancel(view, chatId);
    else this.#running = { ...this.#running, stopWanted: true }; // not admitted yet
  }

  async #cancel(view, chatId) {
    try {
      const chat = await this.#api.cancelChat(chatId);
      if (isOpen(view.exchange)) view.update(withChat(view.exchange, chat));
      this.#setRunning(null);
    } catch (problem) {
      this.#listener.onRefused(problem, null);
    }
  }

  #setRunning(running) {
    this.#running = running;
    this.#listener.onRunning(running !== null);
  }
}
