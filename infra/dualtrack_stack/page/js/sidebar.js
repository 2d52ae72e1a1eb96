/** The list of conversations, to search, open, export, rename and delete; a drawer on narrow screens. */
import { agentName } from "./agents.js";
import { families } from "./branches.js";
import { ConversationSearch } from "./conversation_search.js";
import { groupsOf } from "./date_groups.js";
import { askText, confirm } from "./dialogs.js";
import { announce, byId, h, icon } from "./dom.js";
import { moment, plural } from "./format.js";
import { load } from "./patience.js";
import { marksOf } from "./plugins.js";
import { askedIn } from "./questions.js";

const UNTITLED = "New conversation";
const PAGE = 50; // conversations in a page of the list
const BRANCHES = 3; // branches shown until the reader asks for all
const EMPTY_PAGES = 20; // pages of a search that are read before the reader has to ask for more
const RUNNING_MS = 5000; // how often the list is read again while a chat runs elsewhere

export const titleOf = (conversation) => conversation.title || UNTITLED;

/** A selector of what has the focus in the list, also when drawn again; empty for none. */
function focusedIn(list) {
  const focused = document.activeElement;
  if (!list.contains(focused)) return "";
  const { family, act } = focused.dataset;
  if (family) return `[data-family="${family}"]`;
  const link = focused.closest("li")?.querySelector("a")?.getAttribute("href");
  return `li:has(> a[href="${link}"]) ${act ? `[data-act="${act}"]` : "a"}`;
}

export class Sidebar {
  #api;
  #listener;
  #items = [];
  #cursor = "";
  #searched = "";
  #current = "";
  #namesAgents = false;
  #waiting = new Set(); // conversations that wait for the reader
  #search;
  #unfolded = new Set(); // conversations whose branches are all shown

  /** `listener`: onRenamed(conversation), onDeleted(id), onListed(conversations), onProblem(problem). */
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
    const search = (text) => this.#find(text);
    this.#search = new ConversationSearch(byId("conversation-search"), byId("conversations"), search);
    this.#narrow.addEventListener("change", () => this.#drawer(false));
    document.addEventListener("visibilitychange", () => this.#lookAgain());
    window.addEventListener("focus", () => this.#lookAgain()); // of a window beside others
    setInterval(
      () =>
        this.#items.some(
          (conversation) => this.#runs(conversation) && conversation.conversation_id !== this.#current,
        ) && this.#lookAgain(),
      RUNNING_MS,
    );
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

  /** Opens the list if it is a drawer, and goes to its search field. */
  search() {
    this.#drawer(true);
    this.#search.focus();
  }

  /** Reads the newest page again; older ones have to be requested again. */
  async refresh() {
    await this.#load("");
  }

  #lookAgain() {
    // not while older ones are read
    if (document.visibilityState === "visible" && this.#items.length <= PAGE) this.refresh();
  }

  async #find(text) {
    this.#searched = text;
    await this.#load("");
    if (this.#searched)
      announce(
        this.#items.length
          ? `${plural(this.#items.length, "conversation")} found.`
          : "No conversation found.",
      );
  }

  async #load(cursor) {
    const searched = this.#searched;
    try {
      const page = await this.#page(cursor, searched);
      if (searched !== this.#searched) return;
      this.#items = cursor ? [...this.#items, ...page.conversations] : page.conversations;
      this.#cursor = page.cursor ?? "";
      this.#listener.onListed(page.conversations);
      this.#draw();
    } catch (problem) {
      this.#listener.onProblem(problem);
    }
  }

  /** The next page that is not empty, while its search is wanted: an empty page need not be the last one. */
  async #page(cursor, searched) {
    let page = await this.#api.conversations(cursor, searched);
    const wanted = () => page.conversations.length === 0 && searched === this.#search.text;
    for (let empty = 0; page.cursor && wanted() && empty < EMPTY_PAGES; empty += 1)
      page = await this.#api.conversations(page.cursor, searched);
    return page;
  }

  /** Whether each conversation says which agent it is with. */
  set namesAgents(named) {
    this.#namesAgents = named;
    this.#draw();
  }

  /** The conversations that wait for the reader: nothing runs in them. */
  set waiting(conversationIds) {
    this.#waiting = new Set(conversationIds);
    this.#draw();
  }

  #runs({ running_chat_id: chatId, conversation_id: id }) {
    return chatId && !this.#waiting.has(id);
  }

  set current(conversationId) {
    this.#current = conversationId;
    this.#draw();
  }

  find(conversationId) {
    return this.#items.find((conversation) => conversation.conversation_id === conversationId);
  }

  #draw() {
    byId("older").hidden = this.#cursor === "";
    const again = focusedIn(byId("conversations"));
    const groups = groupsOf(families(this.#items)).map(({ name, families: listed }) =>
      h(
        "section",
        { class: "conversation-group" },
        h("h2", {}, name),
        h(
          "ul",
          {},
          listed.map((family) => this.#family(family)),
        ),
      ),
    );
    const nothing =
      this.#searched && !groups.length
        ? h(
            "p",
            { class: "fine muted" },
            "Nothing found. Questions, answers and summaries are searched by whole words.",
          )
        : "";
    byId("conversations").replaceChildren(...groups, nothing);
    if (again) (byId("conversations").querySelector(again) ?? byId("new-conversation")).focus();
  }

  #family({ root, branches }) {
    const id = root.conversation_id;
    const unfolded = this.#unfolded.has(id);
    const shown = branches.filter(
      (branch, index) => unfolded || index < BRANCHES || branch.conversation_id === this.#current,
    );
    return [
      this.#item(root, this.#titled(root), branches.length),
      ...shown.map((branch) =>
        this.#item(branch, this.#branchTitle(branch, this.find(branch.forked_from)), 0),
      ),
      branches.length > BRANCHES &&
        h(
          "li",
          { class: "conversation branch" },
          h(
            "button",
            {
              type: "button",
              class: "link-button fine",
              "data-family": id,
              "aria-expanded": String(unfolded),
              onclick: () => this.#unfold(id),
            },
            unfolded ? "Fewer branches" : `All ${branches.length} branches`,
          ),
        ),
    ].filter(Boolean);
  }

  #unfold(id) {
    if (!this.#unfolded.delete(id)) this.#unfolded.add(id);
    this.#draw();
  }

  #titled(conversation) {
    return [
      this.#running(conversation),
      marksOf(conversation),
      titleOf(conversation),
      this.#namesAgents ? h("span", { class: "agent-of" }, agentName(conversation.profile)) : "",
    ];
  }

  #running(conversation) {
    if (this.#waiting.has(conversation.conversation_id))
      return h(
        "span",
        { class: "waiting-mark" },
        h("span", { class: "visually-hidden" }, "Waiting for you: "),
      );
    return this.#runs(conversation)
      ? h("span", { class: "running-mark" }, h("span", { class: "visually-hidden" }, "Running: "))
      : "";
  }

  /** A branch that still has its parent's title is named by what its first own question asks. */
  #branchTitle(branch, { title }) {
    const name = h("span", { class: "branch-name" }, titleOf(branch));
    if (branch.title === title) this.#nameBranch(name, branch);
    return [
      icon("branch"),
      this.#running(branch),
      h("span", { class: "visually-hidden" }, "Branch: "),
      name,
      ", ",
      h("span", { class: "muted" }, moment(branch.updated_at)),
    ];
  }

  async #nameBranch(name, { conversation_id: id, forked_before: before }) {
    name.textContent = `Question ${before.slice(1)}`;
    name.textContent = await askedIn(this.#api, id, Number(before.slice(1)));
    const item = name.closest("li");
    for (const button of item?.querySelectorAll("[data-act]") ?? [])
      button.setAttribute(
        "aria-label",
        `${button.dataset.act} ${button.dataset.of}, branch: ${name.textContent}`,
      );
  }

  #item(conversation, name, branches) {
    const title = titleOf(conversation);
    const isBranch = name[0] instanceof SVGElement;
    const of = `${title}, ${moment(conversation.updated_at)}`;
    const named = (act) => ({ "data-act": act, "data-of": of, "aria-label": `${act} ${of}` });
    return h(
      "li",
      { class: `conversation${isBranch ? " branch" : ""}` },
      h(
        "a",
        {
          href: `#${conversation.conversation_id}`,
          "aria-current": conversation.conversation_id === this.#current ? "page" : null,
          title,
          onclick: () => this.close(),
        },
        name,
      ),
      h(
        "span",
        { class: "conversation-actions" },
        h(
          "button",
          {
            type: "button",
            class: "icon-button small",
            ...named("Export"),
            onclick: () => this.#export(conversation),
          },
          icon("down"),
        ),
        h(
          "button",
          {
            type: "button",
            class: "icon-button small",
            ...named("Rename"),
            onclick: () => this.#rename(conversation),
          },
          icon("pencil"),
        ),
        h(
          "button",
          {
            type: "button",
            class: "icon-button small",
            ...named("Delete"),
            onclick: () => this.#delete(conversation, branches),
          },
          icon("bin"),
        ),
      ),
    );
  }

  async #export(conversation) {
    const { openExport } = await load(() => import("./export_dialog.js"));
    openExport(this.#api, conversation.conversation_id, titleOf(conversation));
  }

  async #rename(conversation) {
    const title = await askText("Rename the conversation", "Title", conversation.title);
    if (!title) return;
    try {
      this.#listener.onRenamed(await this.#api.renameConversation(conversation.conversation_id, title));
      await this.refresh();
    } catch (problem) {
      this.#listener.onProblem(problem);
    }
  }

  async #delete(conversation, branches) {
    const kept = branches > 0 ? "  Its branches stay unchanged." : "";
    if (
      !(await confirm(
        "Delete the conversation?",
        `“${titleOf(conversation)}” and every record of it will be gone.${kept} This cannot be undone.`,
        "Delete",
      ))
    )
      return;
    try {
      await this.#api.deleteConversation(conversation.conversation_id);
      this.#listener.onDeleted(conversation.conversation_id);
      await this.refresh();
    } catch (problem) {
      this.#listener.onProblem(problem);
    }
  }
}
