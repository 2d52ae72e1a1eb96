/** The page: signs in, then shows what the address names (`address.js`). */

import { addressOf } from "./address.js";
import { Agents, agentName } from "./agents.js";
import { AllowedTools } from "./allowed_tools.js";
import { Api, Refusal, Unreachable } from "./api.js";
import { placeIn } from "./branch_links.js";
import { branchesOf, numberOf } from "./branches.js";
import { tellBusy } from "./busy_notice.js";
import { Composer } from "./composer.js";
import { leaveKeysToInputMethods } from "./composition.js";
import { isRefusedToken } from "./connections.js";
import { Conversation } from "./conversation.js";
import { copy } from "./copy.js";
import { CORPORA } from "./corpora.js";
import { loadCredits, showCredits } from "./credits_button.js";
import { announce, byId, h, redraw } from "./dom.js";
import { claimDrafts, dropDrafts } from "./drafts.js";
import { FollowText } from "./follow_text.js";
import { MemoryPanel } from "./memory_panel.js";
import { OpenTabs } from "./open_tabs.js";
import { load, NotLoaded } from "./patience.js";
import { PausesList } from "./pauses_list.js";
import { panelButtons, usePlugins } from "./plugins.js";
import { Relatives } from "./relatives.js";
import { isAdmin, sessionFor } from "./session.js";
import { shortageNotice } from "./shortage_notice.js";
import { listenForShortcuts } from "./shortcuts.js";
import { Sidebar, titleOf } from "./sidebar.js";
import { showSignIn } from "./sign_in_view.js";
import { StoredFiles } from "./stored_files.js";
import { applyTheme } from "./theme.js";

const TITLED_MS = 3000; // until a title by the model is there

class Page {
  #api;
  #conversation;
  #composer;
  #sidebar;
  #follow = new FollowText();
  #files;
  #memory;
  #agents = new Agents((text) => this.#composer.fill(text));
  #corpus = null;
  #profile = ""; // the agent of the open conversation, once known
  #relatives;
  #grants; // the command that gives more credits, on a local stack
  #pauses;
  #allowed;
  #stored = null; // the open conversation as the API shows it, once it is stored

  constructor(api, session, tabs) {
    this.#api = api;
    this.#grants = session.grants;
    this.#files = new StoredFiles(api);
    this.#relatives = new Relatives(api);
    this.#composer = new Composer({
      onSend: (message) => this.#send(message),
      onStop: () => this.#conversation.stop(),
      asked: () => this.#conversation.exchanges.map(({ question }) => question),
    });
    this.#pauses = new PausesList(api, {
      nameOf: (id) => this.#sidebar.find(id)?.title,
      onDecided: (id) => this.#isOpen(id) && this.#readDecided(),
      onListed: (ids) => {
        this.#sidebar.waiting = ids;
      },
    });
    this.#allowed = new AllowedTools(api, {
      isOpen: (id) => this.#isOpen(id),
      onTakenBack: (id) => this.#pauses.decided(id),
    });
    this.#sidebar = new Sidebar(api, {
      onRenamed: (conversation) =>
        this.#isOpen(conversation.conversation_id) && this.#setTitle(titleOf(conversation)),
      onDeleted: (id) => this.#deleted(id),
      onListed: (conversations) => {
        const open = conversations.find(({ conversation_id: id }) => this.#isOpen(id));
        if (open) {
          this.#setTitle(titleOf(open));
          this.#catchUp(open.queries);
        }
        this.#relatives.learn(conversations);
        this.#showBranches();
        this.#pauses.retry();
      },
      onProblem: (problem) => this.#composer.notice(problem.message),
    });
    this.#conversation = new Conversation(api, this.#files, {
      onRunning: (running) => {
        this.#composer.running = running;
      },
      onAdmitted: (chat) => this.#admitted(chat),
      onAnswered: () => this.#answered(),
      onEnded: (exchange) => this.#ended(exchange),
      onCredits: showCredits,
      onPaused: () => this.#paused(),
      onDecided: (conversationId) => this.#pauses.decided(conversationId),
      onResumed: () => this.#composer.takeFocus(),
      onAllowed: (conversationId) => this.#allowed.refresh(conversationId),
      describe: (tool) => this.#agents.describe(tool),
      onRefused: (problem, message, conversationId) => this.#refused(problem, message, conversationId),
      onEmpty: (empty) => {
        byId("welcome").hidden = !empty;
      },
    });
    this.#memory = new MemoryPanel(api, this.#conversation);
    this.#wire(session, tabs);
  }

  #wire(session, tabs) {
    byId("who").textContent = session.name;
    const signOut = () => {
      dropDrafts();
      tabs.signedOut();
      session.signOut();
    };
    byId("sign-out").addEventListener("click", signOut);
    byId("new-conversation").addEventListener("click", () => this.#go(""));
    byId("show-chat").addEventListener("click", () => this.#switchTo("chat"));
    byId("corpora").hidden = !isAdmin(session);
    byId("corpora").append(
      ...Object.entries(CORPORA).map(([name, { title }]) =>
        h("button", { type: "button", class: "button", onclick: () => this.#go(name) }, title),
      ),
    );
    byId("show-memory").addEventListener("click", () => this.#switchTo("memory"));
    byId("credits").addEventListener("click", async () => {
      const { openCredits } = await load(() => import("./credits_view.js"));
      openCredits(this.#api, signOut);
    });
    byId("settings").addEventListener("click", () => this.#settings());
    byId("corpora").after(...panelButtons(this.#api, () => this.#sidebar.close()));
    listenForShortcuts({
      new: () => this.#go(""),
      search: () => this.#sidebar.search(),
      message: () => this.#composer.focus(),
      stop: () => this.#conversation.stop(),
      settings: () => this.#settings(),
    });
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address belongs to the conversation
      this.#composer.focus();
    });
    document.addEventListener("click", (event) => this.#clicked(event));
    window.addEventListener("hashchange", () => this.#show());
    document.addEventListener("visibilitychange", () => this.#lookAgain());
    window.addEventListener("unhandledrejection", ({ reason }) => {
      if (reason instanceof NotLoaded) this.#composer.notice(reason.message);
    });
  }

  /** What was decided elsewhere while this tab was hidden. */
  #lookAgain() {
    if (document.visibilityState !== "visible") return;
    this.#readDecided();
    this.#pauses.refresh();
    loadCredits(this.#api);
  }

  /** Shows what was asked elsewhere in the open conversation, now that it has so many `queries`. */
  async #catchUp(queries) {
    if (!(await this.#conversation.catchUp(queries))) return;
    this.#showBranches();
    loadCredits(this.#api);
    if (!byId("memory-view").hidden) this.#memory.draw();
    announce("What was asked elsewhere is shown.");
  }

  /** What was decided in another tab or program about the open conversation. */
  #readDecided() {
    this.#conversation.lookAgain();
    this.#allowed.refresh(this.#openId);
  }

  get #openId() {
    return this.#conversation.conversationId;
  }

  #isOpen(id) {
    return id === this.#openId;
  }

  async start() {
    await Promise.all([
      this.#sidebar.refresh(),
      this.#pauses.refresh(),
      loadCredits(this.#api),
      this.#loadAgents(),
      this.#show(),
    ]);
  }

  async #settings() {
    const { openSettings } = await load(() => import("./settings_dialog.js"));
    openSettings(this.#api, this.#profile || this.#agents.chosen, !byId("corpora").hidden);
  }

  /** Loads the agents. Without them the server's default answers, so an error is not shown. */
  async #loadAgents() {
    try {
      this.#agents.offered = await this.#api.tools();
      this.#sidebar.namesAgents = this.#agents.several;
      this.#setAgent(this.#profile);
    } catch (problem) {
      if (!(problem instanceof Refusal || problem instanceof Unreachable)) throw problem;
    }
  }

  /** Shows the address's view. */
  async #show() {
    const { conversationId, chatId, messageId, view, corpus, jobId } = addressOf(location.hash);
    this.#composer.notice("");
    this.#corpus?.close();
    if (messageId) this.#drawView(view); // a hidden element cannot be scrolled to
    if (!this.#isOpen(conversationId) || !conversationId) await this.#open(conversationId, chatId, messageId);
    else if (messageId) this.#goTo(messageId);
    if (addressOf(location.hash).conversationId !== conversationId) return; // the reader has left
    this.#drawView(view);
    if (view === "corpus") await this.#openCorpus(corpus, jobId);
  }

  /** Loads the administrators' modules, only for them. */
  async #openCorpus(name, jobId) {
    const { title } = CORPORA[name];
    this.#setTitle(title);
    byId("corpus-view").setAttribute("aria-label", title);
    const { CorpusView } = await load(() => import("./corpus_view.js"));
    if (addressOf(location.hash).corpus !== name) return;
    this.#corpus?.close();
    this.#corpus = new CorpusView(this.#api, byId("corpus-view"), name, (job) =>
      history.replaceState(null, "", `#${name}${job && `/${job}`}`),
    );
    byId("corpus-view").focus({ preventScroll: true });
    await this.#corpus.open(jobId);
  }

  async #open(conversationId, chatId, messageId) {
    this.#sidebar.current = conversationId;
    this.#composer.draftKey = conversationId;
    this.#setOpen(null);
    byId("views").hidden = !conversationId;
    if (!conversationId) {
      this.#setTitle("New conversation");
      this.#setAgent("");
      this.#conversation.clear();
      this.#composer.focus();
      return;
    }
    try {
      const conversation = await this.#conversation.open(conversationId, chatId);
      this.#setTitle(titleOf(conversation));
      this.#setAgent(conversation.profile);
      this.#setOpen(conversation);
      if (!messageId || !this.#goTo(messageId)) {
        this.#follow.toEnd();
        this.#composer.focus();
      }
      this.#loadRelatives(messageId);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.#conversation.clear();
      this.#setTitle("Conversation");
      this.#setAgent("");
      this.#composer.notice(
        problem instanceof Refusal && problem.status === 404
          ? "There is no such conversation. Begin a new one."
          : problem.message,
      );
    }
  }

  /** Shows an address at once: what is written after the click can't reach the conversation that was left. */
  #go(hash) {
    this.#sidebar.close();
    const address = `${location.pathname}${location.search}${hash && `#${hash}`}`;
    if (location.hash.replace(/^#/, "") !== hash) history.pushState(null, "", address);
    this.#show();
  }

  #setTitle(title) {
    byId("title").textContent = title;
    document.title = title === "New conversation" ? "dualtrack" : `${title} · dualtrack`;
  }

  /** Shows the agent of the open conversation; empty while it can be chosen. */
  #setAgent(profile) {
    this.#profile = profile;
    byId("agent").textContent = agentName(profile);
    byId("agent").hidden = !profile || !this.#agents.several;
    this.#agents.draw(profile);
  }

  // ── branches ──

  /** Whether the open conversation shows this question. */
  #goTo(messageId) {
    const view = this.#conversation.viewAt(messageId);
    if (view) this.#follow.to(view.element);
    return Boolean(view);
  }

  #setOpen(conversation) {
    this.#stored = conversation;
    this.#allowed.show(conversation);
    this.#showBranches();
  }

  /** `messageId`: the question at which the reader has changed the branch and may go on to the next. */
  async #loadRelatives(messageId = "") {
    const { conversationId, signal } = this.#conversation;
    try {
      await this.#relatives.load(this.#stored, signal);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      // the list has the branches too
      if (!(problem instanceof Refusal || problem instanceof Unreachable)) throw problem;
    }
    if (!this.#isOpen(conversationId)) return;
    this.#showBranches();
    if (!messageId) return;
    const parting = this.#conversation.viewAt(messageId)?.element ?? byId("next-branches");
    parting.querySelector(".branch-figure")?.focus({ preventScroll: true });
  }

  get #branches() {
    return branchesOf(this.#relatives.known, this.#openId);
  }

  #showBranches() {
    this.#conversation.showBranches(this.#branches);
    const parent = this.#relatives.known.get(this.#stored?.forked_from);
    byId("branched-from").hidden = !parent;
    if (!parent) return;
    const before = numberOf(this.#stored.forked_before);
    redraw(
      byId("branched-from"),
      h("span", { class: "wide-only" }, "Branched "),
      "from ",
      h("a", { href: placeIn(parent.conversation_id, before) }, titleOf(parent)),
      ` at question ${before}`,
    );
  }

  /** Begins a branch with question `number`. Throws the API's errors. */
  async #branch(number, message) {
    const home = this.#relatives.toFork(this.#openId, number);
    try {
      await this.#conversation.branch(home, number, message, (fork) => this.#entered(fork, number));
      this.#sidebar.refresh();
    } catch (problem) {
      if (problem.code === "insufficient_credits")
        this.#composer.notice(...shortageNotice(problem.detail, this.#grants));
      throw problem;
    }
  }

  #entered(fork, number) {
    history.pushState(null, "", `#${fork.conversation_id}`); // Back leads to where it was branched from
    this.#sidebar.current = fork.conversation_id;
    this.#composer.draftKey = fork.conversation_id;
    this.#composer.notice("");
    this.#setTitle(titleOf(fork));
    this.#setAgent(fork.profile);
    this.#setOpen(fork);
    this.#loadRelatives();
    this.#follow.toEnd();
    this.#composer.focus();
    announce(`A new branch begins with question ${number}.`);
  }

  async #edit(button) {
    const view = this.#conversation.viewOf(button);
    const { messageId } = view.exchange;
    const draftKey = `${this.#openId}/${messageId}`; // another one may be open once the module is loaded
    const { QuestionEditor } = await load(() => import("./question_editor.js"));
    view.editor = new QuestionEditor(draftKey, view.exchange, {
      onSend: (message) => this.#branch(numberOf(messageId), message),
      onCancel: () => {
        view.editor = null;
      },
    });
  }

  /** Branches on a button's click; the button shows that it is working. */
  async #branchBy(button, number, message) {
    if (button.getAttribute("aria-disabled")) return;
    button.setAttribute("aria-disabled", "true");
    try {
      await this.#branch(number, message);
    } catch (problem) {
      if (problem.code !== "insufficient_credits") this.#composer.notice(problem.message);
    } finally {
      button.removeAttribute("aria-disabled"); // a shared answer still has its button
    }
  }

  #regenerate(button) {
    const { messageId, question, attachments } = this.#conversation.exchangeOf(button);
    this.#branchBy(button, numberOf(messageId), { text: question, files: attachments });
  }

  // ── a chat ──

  #send(message) {
    this.#conversation.send(message, this.#agents.chosen);
    this.#follow.toEnd();
  }

  #admitted(chat) {
    const isNew = byId("views").hidden;
    history.replaceState(null, "", `#${chat.conversation_id}/${chat.chat_id}`);
    byId("views").hidden = false;
    this.#sidebar.current = chat.conversation_id;
    this.#showBranches();
    if (isNew) {
      this.#composer.moveTo(chat.conversation_id);
      this.#setAgent(this.#agents.chosen);
    }
    if (!this.#stored?.title)
      this.#loadTitle(chat.conversation_id); // a branch before the first question has no title either
    else this.#sidebar.refresh(); // it is the latest now
  }

  async #loadTitle(conversationId) {
    await this.#sidebar.refresh();
    const conversation =
      this.#sidebar.find(conversationId) ??
      (await this.#api.conversationHead(conversationId).catch(() => null)); // the list may lag, or show a search
    if (!conversation || !this.#isOpen(conversationId)) return;
    this.#setTitle(titleOf(conversation));
    this.#setOpen(conversation);
  }

  #answered() {
    this.#dropChatFromAddress();
  }

  #ended({ calls, messageId }) {
    if (Object.values(calls).some(isRefusedToken))
      this.#composer.notice(
        h(
          "p",
          {},
          "GitHub did not accept your token. ",
          h(
            "button",
            { type: "button", class: "link-button", onclick: () => this.#settings() },
            "Connections",
          ),
        ),
      );
    this.#dropChatFromAddress();
    this.#showBranches();
    this.#sidebar.refresh();
    if (messageId === "q1") setTimeout(() => this.#sidebar.refresh(), TITLED_MS);
    loadCredits(this.#api);
    if (!byId("memory-view").hidden) this.#memory.draw();
  }

  #paused() {
    this.#pauses.refresh();
    this.#sidebar.refresh();
    loadCredits(this.#api);
  }

  #dropChatFromAddress() {
    const { conversationId, chatId } = addressOf(location.hash);
    if (chatId) history.replaceState(null, "", `#${conversationId}`);
  }

  /** `message` is null if the failure was not in sending it. */
  #refused(problem, message, conversationId) {
    if (message) this.#composer.restore(message, conversationId);
    if (message && !this.#isOpen(conversationId))
      this.#composer.notice(`${problem.message} Your message was kept in its conversation.`);
    else if (problem.code === "insufficient_credits")
      this.#composer.notice(...shortageNotice(problem.detail, this.#grants));
    else if (problem.code === "conversation_busy" || problem.code === "conversation_paused")
      this.#busy(problem, conversationId);
    else this.#composer.notice(problem.message);
    this.#composer.focus();
    loadCredits(this.#api);
  }

  #busy(refusal, conversationId) {
    const follow = (chatId) => {
      this.#composer.notice("");
      this.#open(conversationId, chatId, "");
    };
    tellBusy(this.#api, refusal, conversationId, {
      follow,
      notice: (...said) => this.#isOpen(conversationId) && this.#composer.notice(...said),
    });
  }

  #deleted(conversationId) {
    this.#relatives.forget(conversationId);
    this.#showBranches();
    if (this.#isOpen(conversationId)) this.#go("");
    announce("The conversation was deleted.");
  }

  // ── memory ──

  #switchTo(view) {
    const { conversationId } = this.#conversation;
    const { chatId } = this.#conversation.runningChat ?? {};
    history.replaceState(
      null,
      "",
      `#${conversationId}${view === "memory" ? "/memory" : chatId ? `/${chatId}` : ""}`,
    );
    this.#drawView(view);
  }

  #drawView(view) {
    byId("show-chat").setAttribute("aria-pressed", String(view === "chat"));
    byId("show-memory").setAttribute("aria-pressed", String(view === "memory"));
    for (const name of ["chat", "memory", "corpus"]) byId(`${name}-view`).hidden = name !== view;
    byId("skip").hidden = view === "corpus"; // there is no message field
    if (view === "memory") this.#memory.draw();
  }

  // ── clicks on redrawn elements ──

  #clicked(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.record) this.#record(button.dataset.record);
    else if (button.dataset.file) this.#files.open(this.#openId, button.dataset);
    else if (button.dataset.copy) this.#copy(button);
    else if (button.dataset.receipt) this.#receipt(button.dataset.receipt);
    else if (button.dataset.retry !== undefined) this.#retry(button);
    else if (button.dataset.continue) this.#continue(button);
    else if (button.dataset.rephrase) this.#rephrase(button);
    else if (button.dataset.edit) this.#edit(button);
    else if (button.dataset.regenerate) this.#regenerate(button);
    else if (button.dataset.branch) this.#branchBy(button, numberOf(button.dataset.branch) + 1, null);
    else if (button.dataset.branches) this.#allBranches(button.dataset.branches);
  }

  async #record(recordId) {
    const conversationId = this.#openId; // another one may be open once the module is loaded
    const { openRecord } = await load(() => import("./record_dialog.js"));
    openRecord(this.#api, conversationId, recordId, (text) => this.#composer.fill(text));
  }

  async #allBranches(question) {
    const { openBranches } = await load(() => import("./branches_dialog.js"));
    openBranches(this.#api, question, this.#branches.get(Number(question)), this.#relatives.known);
  }

  async #receipt(chatId) {
    const { openReceipt } = await load(() => import("./receipt_dialog.js"));
    openReceipt(this.#api, chatId);
  }

  #copy(button) {
    const text =
      button.dataset.copy === "code"
        ? button.closest(".code").querySelector("pre").textContent
        : this.#conversation.exchangeOf(button).response;
    copy(button, text);
  }

  /** The declined question is put back to be asked in other words, before what is written already. */
  #rephrase(button) {
    const { question } = this.#conversation.exchangeOf(button);
    this.#composer.restore({ text: question, files: [] });
    this.#composer.focus();
  }

  #continue(button) {
    if (button.getAttribute("aria-disabled")) return this.#composer.notice(button.title);
    const { responseId } = this.#conversation.exchangeOf(button);
    return this.#send({ text: "", files: [], continues: responseId });
  }

  async #retry(button) {
    if (button.getAttribute("aria-disabled")) return this.#composer.notice(button.title);
    const { question, continues, attachments } = this.#conversation.exchangeOf(button);
    if (continues) return this.#send({ text: "", files: [], continues });
    const { conversationId } = this.#conversation;
    try {
      const files = await this.#files.toSend(conversationId, attachments);
      if (this.#isOpen(conversationId)) this.#send({ text: question, files });
    } catch (problem) {
      this.#composer.notice(problem.message);
    }
  }
}

async function showMode() {
  const response = await fetch("/dev/status");
  const { mode, model } = await response.json();
  if (mode !== "offline") return;
  byId("mode").textContent = `Offline: answers come from the ${model}.`;
  byId("mode").hidden = false;
}

async function boot() {
  const config = await (await fetch("config.json")).json();
  usePlugins(config.plugins);
  const session = sessionFor(config.sign_in);
  const leave = () => {
    session.drop();
    location.reload();
  };
  const tabs = new OpenTabs(session, leave);
  session.onRenewed = () => tabs.tell();
  let problem = "";
  try {
    await session.resume();
    await tabs.join();
  } catch (failed) {
    problem = failed.message;
  }
  const enter = async () => {
    byId("sign-in").hidden = true;
    byId("shell").hidden = false;
    tabs.signedIn();
    const api = new Api(config, session, leave);
    claimDrafts(session.name);
    const page = new Page(api, session, tabs);
    if (session.kind === "local") showMode();
    await page.start();
  };
  byId("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await session.signIn(byId("sign-in-name").value.trim(), byId("sign-in-admin").checked);
      await enter();
    } catch (failed) {
      showSignIn(session, failed.message);
    }
  });
  if (session.token) await enter();
  else {
    showSignIn(session, problem);
    if (session.kind !== "local") return;
    const own = await session.ownName();
    const field = byId("sign-in-name");
    if (field.value) return; // text typed meanwhile stays
    field.value = own;
    if (document.activeElement === field) field.select(); // what is typed next replaces it
  }
}

applyTheme();
leaveKeysToInputMethods();
boot();
