/**
 * The page: signs in, then shows the conversation that the address names.
 *
 * `#cv_…` is a conversation, `#cv_…/ch_…` one in which that chat runs, `#cv_…/memory` its two tracks.
 */
import { Api, Refusal, Unreachable } from "./api.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { openCredits, shortageNotice } from "./credits_view.js";
import { announce, byId, h, icon } from "./dom.js";
import { FollowText } from "./follow_text.js";
import { count } from "./format.js";
import { drawMemory } from "./memory_view.js";
import { openRecord } from "./record_dialog.js";
import { forget } from "./remembered.js";
import { sessionFor } from "./session.js";
import { Sidebar, titleOf } from "./sidebar.js";

const PROFILE = "assistant"; // what a conversation begins with, if nothing else is asked for

/** `{conversationId, chatId, memory}` of the address. Pure. */
export function placeOf(hash) {
  const [conversationId = "", rest = ""] = hash.replace(/^#/, "").split("/");
  if (!/^cv_[0-9a-z]+$/.test(conversationId)) return { conversationId: "", chatId: "", memory: false };
  return { conversationId, chatId: /^ch_[0-9a-z]+$/.test(rest) ? rest : "", memory: rest === "memory" };
}

class Page {
  #api;
  #conversation;
  #composer;
  #sidebar;
  #follow = new FollowText();
  #memoryDrawn = 0;
  #titled = "";

  constructor(api, session) {
    this.#api = api;
    this.#composer = new Composer({ onSend: (message) => this.#send(message), onStop: () => this.#conversation.stop() });
    this.#sidebar = new Sidebar(api, {
      onRenamed: (one) => one.conversation_id === this.#conversation.conversationId && this.#setTitle(titleOf(one)),
      onDeleted: (id) => this.#deleted(id),
      onProblem: (problem) => this.#composer.notice(problem.message),
    });
    this.#conversation = new Conversation(api, {
      onRunning: (running) => {
        this.#composer.running = running;
      },
      onAdmitted: (chat) => this.#admitted(chat),
      onAnswered: () => this.#answered(),
      onEnded: () => this.#ended(),
      onCredits: (available) => this.#showCredits(available),
      onRefused: (problem, message) => this.#refused(problem, message),
      onEmpty: (empty) => {
        byId("welcome").hidden = !empty;
      },
    });
    this.#wire(session);
  }

  #wire(session) {
    byId("who").textContent = session.name;
    byId("sign-out").addEventListener("click", () => session.signOut());
    byId("new-conversation").addEventListener("click", () => this.#go(""));
    byId("show-chat").addEventListener("click", () => this.#showMemory(false));
    byId("show-memory").addEventListener("click", () => this.#showMemory(true));
    byId("credits").addEventListener("click", () => openCredits(this.#api));
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address belongs to the conversation
      this.#composer.focus();
    });
    byId("welcome").replaceChildren(...welcome());
    document.addEventListener("click", (event) => this.#clicked(event));
    window.addEventListener("hashchange", () => this.#show());
  }

  async start() {
    await Promise.all([this.#sidebar.refresh(), this.#loadCredits(), this.#suggest(), this.#show()]);
  }

  /** What the profile suggests to ask. A page without it works as well, so a refusal is not told. */
  async #suggest() {
    try {
      const { profiles } = await this.#api.tools();
      const texts = profiles.find((one) => one.name === PROFILE)?.suggestions ?? [];
      byId("welcome").querySelector(".suggestions").replaceChildren(...texts.map((text) => suggestion(text, () => this.#composer.fill(text))));
    } catch (problem) {
      if (!(problem instanceof Refusal || problem instanceof Unreachable)) throw problem;
    }
  }

  /** Shows what the address says. */
  async #show() {
    const { conversationId, chatId, memory } = placeOf(location.hash);
    this.#composer.notice("");
    if (conversationId !== this.#conversation.conversationId || !conversationId) await this.#open(conversationId, chatId);
    if (placeOf(location.hash).conversationId === conversationId) this.#drawView(memory); // else the reader has gone on
  }

  async #open(conversationId, chatId) {
    this.#sidebar.current = conversationId;
    byId("views").hidden = !conversationId;
    if (!conversationId) {
      this.#setTitle("New conversation");
      this.#conversation.clear();
      this.#composer.focus();
      return;
    }
    try {
      const found = await this.#conversation.open(conversationId, chatId);
      this.#setTitle(titleOf(found));
      this.#follow.toEnd();
      this.#composer.focus();
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.#conversation.clear();
      this.#setTitle("Conversation");
      this.#composer.notice(problem instanceof Refusal && problem.status === 404 ? "There is no such conversation. Begin a new one." : problem.message);
    }
  }

  #go(place) {
    this.#sidebar.close();
    if (location.hash.replace(/^#/, "") === place) this.#show();
    else location.hash = place;
  }

  #setTitle(title) {
    this.#titled = title;
    byId("title").textContent = title;
    document.title = title === "New conversation" ? "dualtrack" : `${title} · dualtrack`;
  }

  // ── a chat ──────────────────────────────────────────────────────────────────────────────────────

  #send(message) {
    this.#conversation.send(message);
    this.#follow.toEnd();
  }

  #admitted(chat) {
    const isNew = byId("views").hidden;
    history.replaceState(null, "", `#${chat.conversation_id}/${chat.chat_id}`);
    byId("views").hidden = false;
    this.#sidebar.current = chat.conversation_id;
    if (isNew) this.#loadTitle(chat.conversation_id);
  }

  async #loadTitle(conversationId) {
    await this.#sidebar.refresh();
    const found = this.#sidebar.find(conversationId);
    if (found && this.#conversation.conversationId === conversationId) this.#setTitle(titleOf(found));
  }

  #answered() {
    this.#dropChatFromAddress();
  }

  #ended() {
    this.#dropChatFromAddress();
    this.#sidebar.refresh();
    this.#loadCredits();
    if (!byId("memory-view").hidden) this.#drawMemory();
  }

  #dropChatFromAddress() {
    const { conversationId, chatId } = placeOf(location.hash);
    if (chatId) history.replaceState(null, "", `#${conversationId}`);
  }

  /** `message` is null when it was not the sending that failed. */
  #refused(problem, message) {
    if (message) this.#composer.restore(message);
    if (problem.code === "insufficient_credits") this.#composer.notice(...shortageNotice(problem.detail));
    else if (problem.code === "conversation_busy") this.#composer.notice("A chat is still running in this conversation. Wait for its answer, or stop it where it was started.");
    else this.#composer.notice(problem.message);
    this.#composer.focus();
    this.#loadCredits();
  }

  #deleted(conversationId) {
    forget(conversationId);
    if (conversationId === this.#conversation.conversationId) this.#go("");
    announce("The conversation was deleted.");
  }

  // ── credits ─────────────────────────────────────────────────────────────────────────────────────

  async #loadCredits() {
    try {
      this.#showCredits((await this.#api.credits()).available);
    } catch {
      // the figure stays as it is; a real problem shows at the next message
    }
  }

  #showCredits(available) {
    byId("credits-figure").textContent = count(available);
    byId("credits").setAttribute("aria-label", `${count(available)} credits left. Show credits`);
    byId("credits").classList.toggle("low", available < 5);
  }

  // ── memory ──────────────────────────────────────────────────────────────────────────────────────

  #showMemory(memory) {
    const { conversationId } = this.#conversation;
    const { chatId } = this.#conversation.runningChat ?? {};
    history.replaceState(null, "", `#${conversationId}${memory ? "/memory" : chatId ? `/${chatId}` : ""}`);
    this.#drawView(memory);
  }

  #drawView(memory) {
    byId("show-chat").setAttribute("aria-pressed", String(!memory));
    byId("show-memory").setAttribute("aria-pressed", String(memory));
    byId("chat-view").hidden = memory;
    byId("memory-view").hidden = !memory;
    if (memory) this.#drawMemory();
  }

  async #drawMemory() {
    const { conversationId } = this.#conversation;
    const drawing = ++this.#memoryDrawn;
    const place = byId("memory-view");
    try {
      const [full, summarised] = await Promise.all([this.#api.conversation(conversationId, "full"), this.#api.conversation(conversationId, "summarised")]);
      if (drawing !== this.#memoryDrawn) return;
      const usages = Object.fromEntries(this.#conversation.exchanges.map((one) => [one.messageId, one.usage]));
      drawMemory(place, full, summarised, usages);
    } catch (problem) {
      place.replaceChildren(h("p", { class: "problem" }, problem.message));
    }
  }

  // ── clicks on what is drawn anew ─────────────────────────────────────────────────────────────────

  #clicked(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.record) openRecord(this.#api, this.#conversation.conversationId, button.dataset.record);
    else if (button.dataset.copy) this.#copy(button);
    else if (button.dataset.retry !== undefined) this.#retry(button);
  }

  async #copy(button) {
    const text = button.dataset.copy === "code" ? button.closest(".code").querySelector("pre").textContent : this.#conversation.exchangeOf(button).response;
    await navigator.clipboard.writeText(text);
    announce("Copied.");
    const label = [...button.childNodes];
    button.replaceChildren(icon("check"), "Copied");
    setTimeout(() => button.replaceChildren(...label), 1500);
  }

  #retry(button) {
    const { question, attachments } = this.#conversation.exchangeOf(button);
    this.#send({ text: question, files: attachments.filter((one) => one.file) });
  }
}

function welcome() {
  return [
    h("p", { class: "mark large", "aria-hidden": "true" }),
    h("h2", {}, "What would you like to know?"),
    h("p", { class: "muted" }, "Answers come with their sources. Every step is kept, and you can look at all of it."),
    h("ul", { class: "suggestions" }),
  ];
}

function suggestion(text, onPick) {
  return h("li", {}, h("button", { type: "button", class: "suggestion", onclick: onPick }, text));
}

async function showMode() {
  const response = await fetch("/dev/status");
  const { mode, model } = await response.json();
  if (mode !== "offline") return;
  byId("mode").textContent = `Offline: answers come from the ${model}.`;
  byId("mode").hidden = false;
}

function showSignIn(session, problem = "") {
  const local = session.kind === "local";
  byId("shell").hidden = true;
  byId("sign-in").hidden = false;
  byId("sign-in-name-field").hidden = !local;
  byId("sign-in-note").textContent = local ? "The local stack asks for no password. Each name is a user of its own, with its own credits." : "";
  byId("sign-in-problem").textContent = problem;
  byId("sign-in-problem").hidden = problem === "";
  byId("sign-in-button").focus();
}

async function boot() {
  const config = await (await fetch("config.json")).json();
  const session = sessionFor(config.sign_in);
  let problem = "";
  try {
    await session.resume();
  } catch (failed) {
    problem = failed.message;
  }
  const enter = async () => {
    byId("sign-in").hidden = true;
    byId("shell").hidden = false;
    const signedOut = () => {
      session.drop();
      location.reload();
    };
    const api = new Api(config.api, session, signedOut);
    const page = new Page(api, session);
    if (session.kind === "local") showMode();
    await page.start();
  };
  byId("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await session.signIn(byId("sign-in-name").value.trim());
      await enter();
    } catch (failed) {
      showSignIn(session, failed.message);
    }
  });
  if (session.token) await enter();
  else showSignIn(session, problem);
}

boot();
