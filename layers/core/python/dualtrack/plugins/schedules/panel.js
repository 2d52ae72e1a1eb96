/** Schedules: what is asked at its times with nobody waiting, what became of it, and a form for another one. */
import { agentName, agentsOf } from "../../js/agents.js";
import { close, show } from "../../js/dialogs.js";
import { announce, h, wayBack } from "../../js/dom.js";
import { moment, start } from "../../js/format.js";
import { action, focusIn, sending, sure } from "../../js/panel.js";
import { showDueTimes } from "./due_times.js";
import { KINDS, outcomeOf, ruleOf, stateOf, timesOf } from "./schedule_words.js";

const PATH = "/v1/schedules";
const MOST = 20; // schedules of a user
const MOST_CHARACTERS = 8000; // of a message

/** `onLeave()`: the reader follows a link to a chat. */
export async function open(api, onLeave) {
  const section = h(
    "section",
    { class: "schedules", tabindex: "-1" },
    h("p", { class: "muted" }, "Loading…"),
  );
  show("Schedules", section);
  const [listed, offered, keys] = await Promise.all([
    api.ask("GET", PATH).catch((problem) => problem),
    api.tools().catch(() => null), // the agent is then the server's default
    api.keys().catch(() => ({ keys: [] })), // a key is then named by its id
  ]);
  if (listed instanceof Error) {
    section.replaceChildren(h("p", { class: "problem", role: "alert" }, listed.message));
    return;
  }
  const names = new Map(keys.keys.map((key) => [key.key_id, key.name]));
  const agents = offered ? agentsOf(offered) : [];
  draw({ api, section, agents, keyName: (id) => names.get(id) ?? id, onLeave, schedules: listed.schedules });
}

function draw(view) {
  const { schedules } = view;
  view.section.replaceChildren(
    h(
      "p",
      { class: "fine muted" },
      "What is asked at its times, with nobody waiting. Each run is a chat: it costs credits, and can be continued.",
    ),
    h("div", { role: "alert", class: "panel-problem" }),
    schedules.length > 0
      ? h(
          "ul",
          { class: "boxed-list" },
          schedules.map((schedule) => line(view, schedule)),
        )
      : h("p", {}, "There is none yet."),
    schedules.length < MOST
      ? maker(view)
      : h("p", { class: "fine muted" }, `You have ${MOST}, which is the most: delete one to make another.`),
  );
}

/** Reads the schedules again, draws them, and puts the focus on one of them. */
async function redraw(view, scheduleId) {
  view.schedules = (await view.api.ask("GET", PATH)).schedules;
  draw(view);
  focusIn(view.section.querySelector(`[data-schedule="${scheduleId}"]`) ?? view.section);
}

async function change(view, schedule, act, told) {
  try {
    await act();
    await redraw(view, schedule.schedule_id);
    announce(told);
  } catch (problem) {
    view.section
      .querySelector(".panel-problem")
      .replaceChildren(h("p", { class: "problem" }, problem.message));
  }
}

const pathOf = ({ schedule_id: id }) => `${PATH}/${id}`;

const nameOf = ({ name, message }) => name || start(message, 60);

function line(view, schedule) {
  const { api } = view;
  const place = h("div", {});
  const paused = schedule.status === "paused";
  const actions = () =>
    place.replaceChildren(
      h(
        "p",
        { class: "notice-actions" },
        schedule.status !== "ended" &&
          action(paused ? "Resume" : "Pause", nameOf(schedule), () =>
            change(
              view,
              schedule,
              () => api.ask("PATCH", pathOf(schedule), { body: { paused: !paused } }),
              paused ? "Resumed." : "Paused.",
            ),
          ),
        action("Delete", nameOf(schedule), () => {
          place.replaceChildren(
            sure("Delete it? Its chats stay.", "Delete", wayBack(place, actions), () =>
              change(view, schedule, () => api.ask("DELETE", pathOf(schedule)), "Deleted."),
            ),
          );
          focusIn(place);
        }),
      ),
    );
  actions();
  return h(
    "li",
    { "data-schedule": schedule.schedule_id, tabindex: "-1" },
    head(view, schedule),
    runs(view, schedule),
    place,
  );
}

function head(view, schedule) {
  const { name, message, profile, key_id: keyId, conversation_id: conversation, next } = schedule;
  const facts = [
    ruleOf(schedule),
    profile && agentName(profile),
    conversation ? "in one conversation" : "a new conversation each time",
    keyId && `runs under the API key ${view.keyName(keyId)}`,
  ];
  const state = stateOf(schedule);
  return [
    h("strong", {}, nameOf(schedule)),
    name && h("p", {}, start(message, 200)),
    h("p", { class: "fine muted" }, facts.filter(Boolean).join(" · ")),
    next.length > 0 &&
      h("p", { class: "fine" }, `Next, in your time: ${next.map((due) => moment(due)).join(" · ")}`),
    state && h("p", { class: schedule.error ? "fine problem" : "fine" }, state),
  ];
}

/** The latest run, and on request all that are kept, with their chats as they are now. */
function runs(view, schedule) {
  if (schedule.runs.length === 0) return h("p", { class: "fine muted" }, "It has not run yet.");
  const list = h(
    "ul",
    { class: "runs", "aria-label": `Runs of ${nameOf(schedule)}` },
    ran(view, schedule.runs[0]),
  );
  if (schedule.runs.length === 1) return list;
  const all = action(`All ${schedule.runs.length} runs`, `of ${nameOf(schedule)}`, async () => {
    try {
      const { runs: whole } = await view.api.ask("GET", pathOf(schedule));
      list.replaceChildren(...whole.map((run) => ran(view, run)));
      list.setAttribute("tabindex", "-1");
      list.focus();
      all.remove();
    } catch (problem) {
      all.after(h("p", { class: "problem", role: "alert" }, problem.message));
    }
  });
  return [list, all];
}

function ran(view, run) {
  const { due_at: due, chat_id: chat, conversation_id: conversation } = run;
  const leave = () => {
    close();
    view.onLeave();
  };
  const when = moment(due);
  return h(
    "li",
    { class: "fine" },
    conversation
      ? h("a", { href: `#${conversation}/${chat}`, onclick: leave, "aria-label": `Chat of ${when}` }, when)
      : when,
    `: ${outcomeOf(run)}`,
  );
}

// ── a new one ─────────────────────────────────────────────────────────────────────────────────────────

function maker(view) {
  const make = async (form) => {
    const entered = Object.fromEntries(new FormData(form));
    const body = {
      message: entered.message,
      ...(entered.schedule_name.trim() && { name: entered.schedule_name.trim() }),
      ...(entered.profile && { profile: entered.profile }),
      ...timesOf(entered),
    };
    const made = await view.api.ask("POST", PATH, { body });
    await redraw(view, made.schedule_id);
    announce(`Made. It is due next at ${moment(made.next[0])}.`);
  };
  const details = h(
    "details",
    { class: "agent-details" },
    h("summary", {}, "Make a schedule"),
    sending(
      make,
      h(
        "label",
        {},
        "What to ask",
        h("textarea", { name: "message", rows: 3, required: true, maxlength: MOST_CHARACTERS }),
      ),
      h("label", {}, "Name, if you like", h("input", { name: "schedule_name", maxlength: 100 })),
      view.agents.length > 1 && agentField(view.agents),
      whenFields(),
      h("button", { class: "button primary" }, "Make the schedule"),
    ),
  );
  showDueTimes(view.api, details);
  return details;
}

const agentField = (agents) =>
  h(
    "label",
    {},
    "Agent",
    h(
      "select",
      { name: "profile" },
      agents.map(({ name }) => h("option", { value: name, selected: name === "assistant" }, agentName(name))),
    ),
  );

/** The choice of a kind, and the fields of the chosen one. */
function whenFields() {
  const fields = h("div", { class: "field-row" });
  const all = {
    time: h("label", {}, "At", h("input", { name: "time", type: "time", required: true, value: "08:00" })),
    amount: h(
      "label",
      {},
      "Every",
      h("input", { name: "amount", type: "number", min: 1, step: 1, required: true, value: 1 }),
    ),
    unit: h(
      "label",
      {},
      "Unit",
      h(
        "select",
        { name: "unit" },
        ["minute", "hour", "day"].map((unit) =>
          h("option", { value: unit, selected: unit === "day" }, `${unit}s`),
        ),
      ),
    ),
    date: h("label", {}, "At", h("input", { name: "date", type: "datetime-local", required: true })),
    cron: h(
      "label",
      {},
      "Minute, hour, day, month, weekday",
      h("input", {
        name: "cron",
        required: true,
        placeholder: "0 8 * * MON#1",
        autocomplete: "off",
        spellcheck: "false",
      }),
    ),
    timezone: h(
      "label",
      {},
      "Time zone",
      h("input", {
        name: "timezone",
        required: true,
        list: "timezones",
        autocomplete: "off",
        value: Intl.DateTimeFormat().resolvedOptions().timeZone,
      }),
    ),
  };
  const choose = (kind) => fields.replaceChildren(...KINDS[kind].fields.map((name) => all[name]));
  choose("daily");
  return [
    h(
      "label",
      {},
      "When",
      h(
        "select",
        { name: "kind", oninput: (event) => choose(event.target.value) },
        Object.entries(KINDS).map(([value, { label }]) => h("option", { value }, label)),
      ),
    ),
    fields,
    h(
      "datalist",
      { id: "timezones" },
      Intl.supportedValuesOf("timeZone").map((zone) => h("option", { value: zone })),
    ),
  ];
}
