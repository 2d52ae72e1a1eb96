/**
 * The open conversation: its exchanges, its running chat, and the reader's actions.
 */

import { ready } from "./answer_text.js";
import { Refusal, Unreachable } from "./api.js";
import { branchLinks } from "./branch_links.js";
import { numberOf } from "./branches.js";
import { byId, redraw } from "./dom.js";
import { follow } from "./events.js";
import { admitted, ask, fromRecords, isOpen, reduce, withChat } from "./exchange.js";
import { ExchangeView } from "./exchange_view.js";
import { load } from "./patience.js";
import { askedIn } from "./questions.js";
import { tick } from "./turn_view.js";

const TICK = 200;
const CHATS_SHOWN = 20; // chat objects fetched for the figures of past answers
const DECIDED = new Set(["already_decided", "not_paused", "expired"]); // refusals of a decision that came too late
const RUNNING = "An answer is being written in this conversation.";

export class Conversation {
  conversationId = "";
  #api;
  #files;
  #listener;
  #list = byId("exchanges");
  #views = [];
  #running = null;
  #isRead = true; // until then it is not known which question is the next
  #unanswered = {}; // the request for a chat that has no answer, and its key
  #opened = new AbortController();

  /**
   * `listener`: onRunning(boolean), onAdmitted(chat), onAnswered(exchange), onEnded(exchange),
   * onCredits(number), onRefused(problem, message, conversationId), onEmpty(boolean),
   * onPaused(), onDecided(conversationId), onResumed(), onAllowed(conversationId), describe(tool).
   */
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
    return this.viewOf(element)?.exchange;
  }

  viewOf(element) {
    return this.#views.find((view) => view.element.contains(element));
  }

  viewAt(messageId) {
    return this.#views.find((view) => view.exchange.messageId === messageId);
  }

  /** The number of the next question. */
  get next() {
    return Math.max(0, ...this.#views.map((view) => numberOf(view.exchange.messageId) || 0)) + 1;
  }

  /** Aborted when the reader goes elsewhere. */
  get signal() {
    return this.#opened.signal;
  }

  /** An empty conversation, which begins with its first message. */
  clear() {
    this.#opened.abort();
    this.#opened = new AbortController();
    this.conversationId = "";
    this.#isRead = true;
    this.#views = [];
    this.#list.replaceChildren();
    byId("next-branches").hidden = true;
    this.#files.forget();
    this.#setRunning(null);
    this.#listener.onEmpty(true);
  }

  /** Shows a stored conversation and follows its running chat. Throws the API's errors. */
  async open(conversationId, chatId = "") {
    this.clear();
    this.conversationId = conversationId;
    this.#isRead = false;
    this.#listener.onEmpty(false);
    const { signal } = this.#opened;
    const [conversation] = await Promise.all([
      this.#api.conversation(conversationId, "full", signal),
      ready(),
    ]);
    this.#isRead = true;
    this.#addStored(conversation, chatId, signal);
    return conversation;
  }

  /** Adds what was asked in it elsewhere, in another tab or program, if it has so many `queries`; whether any was. */
  async catchUp(queries) {
    const { conversationId, signal } = this;
    const isBehind = () => this.#isRead && !this.#running && this.#views.length < queries;
    if (!isBehind()) return false;
    const conversation = await this.#api.conversation(conversationId, "full", signal).catch(() => null);
    if (!conversation || signal.aborted || !isBehind()) return false;
    this.#addStored(conversation, "", signal);
    return true;
  }

  /** Adds the exchanges that are not shown yet, and follows the last one if it runs. */
  #addStored({ conversation_id: conversationId, records, running_chat_id: running }, chatId, signal) {
    const added = fromRecords(records).filter(({ messageId }) => !this.viewAt(messageId));
    const last = added.map((exchange) => this.#add(exchange)).at(-1);
    this.#listener.onEmpty(this.#views.length === 0);
    if (last && isOpen(last.exchange)) this.#resume(last, last.exchange.chatId || chatId || running, signal);
    this.#addFigures(signal).then(() => this.#files.fill(this.#list, conversationId, signal));
    this.#files.fill(this.#list, conversationId, signal);
  }

  /** A view of the exchange, before those of later questions. */
  #add(exchange) {
    const view = new ExchangeView(exchange, {
      describe: (tool) => this.#listener.describe(tool),
      decide: (decided, decision) => this.#decide(decided, decision),
    });
    const number = numberOf(exchange.messageId) || Number.POSITIVE_INFINITY;
    const later = this.#views.findIndex((other) => numberOf(other.exchange.messageId) > number);
    const at = later < 0 ? this.#views.length : later;
    this.#list.insertBefore(view.element, this.#views[at]?.element ?? null);
    this.#views.splice(at, 0, view);
    this.#markLast();
    return view;
  }

  /** Starts from the first event: the page only has the chat's question. */
  async #resume(view, chatId, signal) {
    if (!chatId) {
      view.update({
        ...view.exchange,
        status: "failed",
        error: { message: "This question has no answer yet, or its chat was started elsewhere." },
      });
      return;
    }
    const { question, continues, attachments, messageId } = view.exchange;
    view.update({ ...ask(question, attachments), continues, messageId, chatId, status: "running" });
    await this.#follow(view, chatId, signal);
  }

  async #addFigures(signal) {
    const past = this.#views
      .filter(({ exchange }) => exchange.chatId && !isOpen(exchange))
      .slice(-CHATS_SHOWN);
    for (const view of past.reverse()) {
      try {
        const chat = await this.#api.chat(view.exchange.chatId, signal);
        view.update(withChat(view.exchange, chat)); // in its current state: its branches may have been added meanwhile
      } catch (problem) {
        if (!(problem instanceof Refusal)) return;
      }
    }
  }

  /**
   * Sends a message, after a lost connection under the same key, so nothing is asked twice.
   *
   * `profile` is the agent of a new conversation; an existing one keeps its own.
   */
  async send(message, profile = "") {
    const { signal } = this.#opened;
    const { continues = "" } = message;
    const view = this.#add({ ...ask(message.text, message.files), continues });
    const { conversationId } = this;
    const sending = new AbortController(); // until its files are uploaded; then it can only be cancelled
    this.#setRunning({ view, chatId: "", sending });
    this.#listener.onEmpty(false);
    try {
      const body = message.continues ? { continue: true } : { message: message.text };
      if (conversationId) body.conversation_id = conversationId;
      else if (profile) body.profile = profile;
      if (message.files.length > 0) {
        const onShare = (uploaded) => view.update({ ...view.exchange, uploaded });
        body.attachments = await this.#toAttachments(message.files, { signal: sending.signal, onShare });
        onShare(null);
      }
      const chat = await this.#admit(body, message.files);
      if (signal.aborted) return; // the reader has left; the chat continues and is shown on return
      this.conversationId = chat.conversation_id;
      view.update(admitted(view.exchange, chat));
      this.#listener.onAdmitted(chat);
      if (this.#running?.stopWanted) this.#cancel(view, chat.chat_id);
      await this.#follow(view, chat.chat_id, signal);
    } catch (problem) {
      if (!signal.aborted) this.#takeBack(view);
      this.#listener.onRefused(problem, message, conversationId);
    }
  }

  #markLast() {
    for (const view of this.#views) view.last = view === this.#views.at(-1);
  }

  async #admit(body, files) {
    const text = JSON.stringify(body);
    if (this.#unanswered.text !== text) this.#unanswered = { text, key: crypto.randomUUID() };
    try {
      const chat = await this.#api.startChat(body, this.#unanswered.key);
      this.#unanswered = {};
      await this.#settled(files);
      return chat;
    } catch (problem) {
      await this.#settled(files, problem);
      if (!(problem instanceof Unreachable)) this.#unanswered = {};
      throw problem;
    }
  }

  async #toAttachments(files, how) {
    const { toAttachments } = await load(() => import("./uploads.js"));
    return toAttachments(this.#api, files, how);
  }

  async #settled(files, problem) {
    if (files.length > 0) (await import("./uploads.js")).forgetUploads(files, problem);
  }

  #takeBack(view) {
    view.element.remove();
    this.#views = this.#views.filter((other) => other !== view);
    this.#markLast();
    this.#runsNoMore(view);
    this.#listener.onEmpty(this.#views.length === 0 && !this.conversationId);
  }

  async #follow(view, chatId, signal) {
    this.#setRunning({ view, chatId });
    const onEvent = (event) => this.#accept(view, event);
    const onTrouble = (trouble) =>
      view.exchange.trouble !== trouble && view.update({ ...view.exchange, trouble });
    try {
      do await follow(this.#api, chatId, { signal, onEvent, onTrouble });
      while (await this.#wasDecided(view, chatId, signal));
    } catch (problem) {
      if (signal.aborted) return;
      await this.#settle(view, chatId, problem);
    }
  }

  /** Whether a chat whose events end with a pause has been resumed: the stream may not have had that event yet. */
  async #wasDecided(view, chatId, signal) {
    if (view.exchange.status !== "paused") return false;
    const { status } = await this.#api.chat(chatId, signal);
    if (status === "paused") {
      this.#runsNoMore(view);
      this.#listener.onPaused();
      return false;
    }
    const { question, continues, attachments, messageId } = view.exchange;
    view.update({ ...ask(question, attachments), continues, messageId, chatId, status: "running" });
    return true;
  }

  /** There are no events (any more, 24 hours after the end): the chat object has the outcome. */
  async #settle(view, chatId, problem) {
    try {
      const chat = await this.#api.chat(chatId);
      view.update(withChat(view.exchange, chat));
    } catch {
      view.update({ ...view.exchange, status: "failed", error: { message: problem.message } });
    }
    this.#runsNoMore(view);
  }

  #accept(view, event) {
    const next = reduce(view.exchange, event);
    view.update(next);
    if (event.event === "credits") this.#listener.onCredits(event.data.available);
    if (event.event === "answer") this.#listener.onAnswered(next);
    if (!isOpen(next)) this.#runsNoMore(view);
    if (event.event === "done" || event.event === "error") this.#listener.onEnded(next);
  }

  /** Sends a decision. What was decided elsewhere meanwhile is shown as it is now. */
  async #decide(view, decision) {
    const { conversationId, signal } = this;
    const { chatId } = view.exchange;
    try {
      const chat = await this.#api.decide(chatId, [decision]);
      this.#listener.onDecided(conversationId);
      if (decision.for && !signal.aborted) this.#listener.onAllowed(conversationId);
      if (chat.status === "paused") return view.update(withChat(view.exchange, chat));
      if (!signal.aborted) this.#listener.onResumed();
    } catch (problem) {
      if (!DECIDED.has(problem.code)) throw problem;
    }
    if (!signal.aborted) this.#resume(view, chatId, signal);
  }

  /** Shows what has become of a paused chat: another tab, or somebody else, may have decided. */
  async lookAgain() {
    const { signal } = this;
    const view = this.#views.find(({ exchange }) => exchange.status === "paused");
    const chat = view && (await this.#api.chat(view.exchange.chatId, signal).catch(() => null));
    if (!chat || signal.aborted || view.exchange.status !== "paused") return;
    if (chat.status === "paused") view.update(withChat(view.exchange, chat));
    else this.#resume(view, chat.chat_id, signal);
  }

  stop() {
    if (!this.#running) return;
    const { view, chatId, sending } = this.#running;
    if (chatId) return this.#cancel(view, chatId);
    this.#running = { ...this.#running, stopWanted: true }; // not admitted yet
    sending.abort(new Error("It was stopped before it was sent."));
  }

  async #cancel(view, chatId) {
    try {
      const chat = await this.#api.cancelChat(chatId);
      if (isOpen(view.exchange)) view.update(withChat(view.exchange, chat));
      this.#runsNoMore(view);
    } catch (problem) {
      this.#listener.onRefused(problem, null);
    }
  }

  /** The next question may be on its way already: `done` comes behind the answer. */
  #runsNoMore(view) {
    if (this.#running?.view === view) this.#setRunning(null);
  }

  #setRunning(running) {
    this.#running = running;
    for (const view of this.#views) view.locked = running ? RUNNING : "";
    byId("next-branches").hidden ||= running !== null;
    this.#listener.onRunning(running !== null);
  }

  // ── branches ────────────────────────────────────────────────────────────────────────────────────

  /**
   * Begins a branch with question `number`: a fork of the conversation `home` before it (of the open one if
   * `home` was deleted), with a message, or with an empty field if that is null. Throws the API's errors;
   * then nothing has changed.
   *
   * `onForked(fork)` is called when the page should open the fork: not if the reader has left meanwhile.
   */
  async branch(home, number, message, onForked) {
    const { conversationId, signal } = this;
    const files = message ? await this.#files.toSend(conversationId, message.files) : [];
    const attachments = files.length > 0 && (await this.#toAttachments(files));
    const fork = await this.#fork(home, number).catch((problem) => {
      if (problem.status !== 404 || home === conversationId) throw problem;
      return this.#fork(conversationId, number);
    });
    const chat =
      message &&
      (await this.#askIn(fork, { message: message.text, ...(attachments && { attachments }) }, files));
    if (signal.aborted) return; // the branch is in the list
    this.#enter(fork, number);
    onForked(fork);
    if (!chat) return;
    const view = this.#add(admitted(ask(message.text, files), chat));
    this.#listener.onEmpty(false);
    this.#listener.onAdmitted(chat);
    this.#follow(view, chat.chat_id, this.#opened.signal);
  }

  #fork(conversationId, number) {
    return this.#api.fork(conversationId, `q${number}`, crypto.randomUUID());
  }

  /** Starts a branch's first chat. If it is refused, the branch is deleted. */
  async #askIn({ conversation_id }, body, files) {
    try {
      return await this.#admit({ ...body, conversation_id }, files);
    } catch (problem) {
      // without a response the chat may still run; an empty branch that cannot be deleted stays listed
      if (problem instanceof Refusal && problem.status < 500)
        this.#api.deleteConversation(conversation_id).catch(() => {});
      throw problem;
    }
  }

  /** Continues in a fork: the shared exchanges are already on the page. */
  #enter(fork, number) {
    this.#opened.abort();
    this.#opened = new AbortController();
    this.conversationId = fork.conversation_id;
    const shared = ({ exchange: { messageId } }) => messageId && numberOf(messageId) < number;
    for (const view of this.#views) if (!shared(view)) view.element.remove();
    this.#views = this.#views.filter(shared);
    this.#markLast();
    this.#setRunning(null);
    this.#addFigures(this.#opened.signal);
    this.#listener.onEmpty(this.#views.length === 0);
  }

  /** Names the branches beside this one by what they ask. */
  async #nameBranches(view, number, branches) {
    const beside = [branches.ids[branches.at - 1], branches.ids[branches.at + 1]].filter(Boolean);
    const asked = await Promise.all(beside.map(async (id) => [id, await askedIn(this.#api, id, number)]));
    if (view.exchange.branches === branches)
      view.update({ ...view.exchange, branches: { ...branches, asked: Object.fromEntries(asked) } });
  }

  /** Shows where the branches part (`branchesOf`); an empty branch says so at its end. */
  showBranches(branchesByNumber) {
    for (const view of this.#views) {
      const number = numberOf(view.exchange.messageId);
      const branches = branchesByNumber.get(number) ?? null;
      const { asked, ...shown } = view.exchange.branches ?? {};
      if (JSON.stringify(branches ?? {}) === JSON.stringify(shown)) continue;
      view.update({ ...view.exchange, branches });
      if (branches) this.#nameBranches(view, number, branches);
    }
    const { next } = this;
    const parting = this.#isRead && branchesByNumber.get(next);
    byId("next-branches").hidden = !parting || this.#running !== null;
    redraw(
      byId("next-branches"),
      ...(parting ? [branchLinks(next, parting), "This branch continues with your next question."] : []),
    );
  }
}
