/** Webhooks: which program is told of what, a test and what came back, a new secret, an end. */
import { agentName, agentsOf } from "../../js/agents.js";
import { show } from "../../js/dialogs.js";
import { announce, h, wayBack } from "../../js/dom.js";
import { moment } from "../../js/format.js";
import { action, focusIn, sending, shownOnce, sure } from "../../js/panel.js";
import { eventWords } from "../../js/plugins.js";
import { deliveryWords } from "./delivery_words.js";

const PATH = "/v1/webhooks";
const EVENTS = {
  "chat.done": "a chat is done",
  "chat.failed": "a chat has failed",
  "chat.paused": "a chat waits for a decision",
  "key.cap_reached": "an API key has reached a cap",
};
const USUAL = ["chat.done", "chat.failed", "chat.paused"];
const MOST = 10; // webhooks of a user
const LOOK_MS = 2000; // how often the answer to a test is looked for
const LOOKS = 45;

/** Shows them. */
export async function open(api) {
  const section = h("section", { class: "webhooks", tabindex: "-1" }, h("p", { class: "muted" }, "Loading…"));
  show("Webhooks", section);
  const [listed, offered] = await Promise.all([
    api.ask("GET", PATH).catch((problem) => problem),
    api.tools().catch(() => null), // it is then told of chats with all agents
  ]);
  if (listed instanceof Error) {
    section.replaceChildren(h("p", { class: "problem", role: "alert" }, listed.message));
    return;
  }
  draw({ api, section, agents: offered ? agentsOf(offered) : [], hooks: listed.webhooks });
}

const pathOf = ({ webhook_id: id }) => `${PATH}/${id}`;

/** `made`: a webhook whose secret is new. */
function draw(view, made = null) {
  const { hooks } = view;
  view.section.replaceChildren(
    h(
      "p",
      { class: "fine muted" },
      "A program of yours is told, by ids alone, what happens to your chats, and to those of your API keys. ",
      h("a", { href: "docs.html" }, "API"),
    ),
    h("div", { role: "alert", class: "panel-problem" }),
    made ? shownOnce(`The secret for ${made.url}. Copy it now: it is not shown again.`, made.secret) : "",
    hooks.length > 0
      ? h(
          "ul",
          { class: "boxed-list" },
          hooks.map((hook) => line(view, hook)),
        )
      : "",
    hooks.length < MOST
      ? maker(view)
      : h("p", { class: "fine muted" }, `You have ${MOST}, which is the most: delete one to make another.`),
  );
}

async function redraw(view, made = null) {
  view.hooks = (await view.api.ask("GET", PATH)).webhooks;
  draw(view, made);
  focusIn(view.section);
}

async function change(view, act) {
  try {
    const done = await act();
    await redraw(view, done?.secret ? done : null);
  } catch (problem) {
    tell(view, problem);
  }
}

const tell = (view, problem) =>
  view.section.querySelector(".panel-problem").replaceChildren(h("p", { class: "problem" }, problem.message));

function line(view, hook) {
  const { api } = view;
  const { url } = hook;
  const place = h("div", {});
  const told = h("div", {});
  const ask = (question, verb, act) => {
    place.replaceChildren(sure(question, verb, wayBack(place, actions), () => change(view, act)));
    focusIn(place);
  };
  const actions = () =>
    place.replaceChildren(
      h(
        "p",
        { class: "notice-actions" },
        action("Send a test", url, () => test(view, hook, told)),
        action("Deliveries", url, () => list(view, hook, told).catch((problem) => tell(view, problem))),
        action("New secret", url, () =>
          ask(
            "Make a new secret? Messages are signed by the old one too for another 24 hours.",
            "Make a new secret",
            () => api.ask("POST", `${pathOf(hook)}/rotate`, { body: {} }),
          ),
        ),
        action("Delete", url, () =>
          ask("Delete it? What waits for it is not sent any more.", "Delete", () =>
            api.ask("DELETE", pathOf(hook)),
          ),
        ),
      ),
    );
  actions();
  return h("li", {}, head(hook), place, told);
}

function head(hook) {
  const {
    url,
    events,
    profiles,
    disabled_at: disabled,
    disabled_because: because,
    failing_since: failing,
  } = hook;
  const words = eventWords(EVENTS);
  const agents = profiles.length > 0 && `only ${profiles.map(agentName).join(", ")}`;
  return [
    h("strong", {}, url),
    h(
      "p",
      { class: "fine muted" },
      [`told when ${events.map((event) => words[event] ?? event).join(", ")}`, agents]
        .filter(Boolean)
        .join(" · "),
    ),
    disabled &&
      h(
        "p",
        { class: "fine problem" },
        `Disabled since ${moment(disabled)}: ${because} A test that arrives enables it again.`,
      ),
    !disabled &&
      failing &&
      h("p", { class: "fine problem" }, `Nothing has arrived since ${moment(failing)}.`),
  ];
}

// ── what it was told ──────────────────────────────────────────────────────────────────────────────────

/** Draws the newest deliveries, or those after a cursor below them; returns the newest page. */
async function list(view, hook, place, cursor = "") {
  const after = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
  const page = await view.api.ask("GET", `${pathOf(hook)}/deliveries?limit=10${after}`);
  const lines = page.deliveries.map((delivery) =>
    h(
      "li",
      { class: "fine" },
      `${moment(delivery.at)} `,
      h("code", {}, delivery.type),
      ` ${deliveryWords(delivery)}`,
    ),
  );
  if (!cursor) {
    const listed = h("ul", { class: "runs", tabindex: "-1", "aria-label": `Deliveries to ${hook.url}` });
    place.replaceChildren(
      lines.length > 0 ? listed : h("p", { class: "fine muted" }, "It was told nothing yet."),
    );
  }
  place.querySelector("ul")?.append(...lines);
  place.querySelector("button")?.remove();
  if (page.cursor)
    place.append(
      action("Older", `deliveries to ${hook.url}`, () =>
        list(view, hook, place, page.cursor).catch((problem) => tell(view, problem)),
      ),
    );
  return page.deliveries;
}

/** Sends a test and waits for what comes back; a webhook that it has enabled is drawn again. */
async function test(view, hook, place) {
  try {
    const { message_id: sent } = await view.api.ask("POST", `${pathOf(hook)}/test`);
    announce("A test is sent within a minute.");
    for (let look = 0; look < LOOKS && place.isConnected; look += 1) {
      const found = (await list(view, hook, place)).find((delivery) => delivery.message_id === sent);
      if (found?.attempts > 0) {
        announce(`The test: ${deliveryWords(found)}`);
        if (hook.disabled_at && found.status === "delivered") await redraw(view);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  } catch (problem) {
    tell(view, problem);
  }
}

// ── a new one ─────────────────────────────────────────────────────────────────────────────────────────

const check = (name, value, label, checked = false) =>
  h("label", { class: "check" }, h("input", { type: "checkbox", name, value, checked }), label);

function maker(view) {
  const make = async (form) => {
    const entered = new FormData(form);
    const body = {
      url: entered.get("url").trim(),
      events: entered.getAll("events"),
      profiles: entered.getAll("profiles"),
    };
    const made = await view.api.ask("POST", PATH, { body });
    await redraw(view, made);
  };
  return h(
    "details",
    { class: "agent-details" },
    h("summary", {}, "Make a webhook"),
    sending(
      make,
      h(
        "label",
        {},
        "Address of your program: https, a public name",
        h("input", { name: "url", type: "url", required: true, maxlength: 2000, placeholder: "https://" }),
      ),
      h(
        "fieldset",
        { class: "choices" },
        h("legend", {}, "It is told when"),
        Object.entries(eventWords(EVENTS)).map(([event, words]) =>
          check("events", event, words, USUAL.includes(event)),
        ),
      ),
      view.agents.length > 1 &&
        h(
          "fieldset",
          { class: "choices" },
          h("legend", {}, "Only of chats with; none: of all"),
          view.agents.map(({ name }) => check("profiles", name, agentName(name))),
        ),
      h("button", { class: "button primary" }, "Make the webhook"),
    ),
  );
}
