/**
 * The settings: theme, agent with its tools and model, connections, API keys, keyboard shortcuts. Loaded when it is
 * opened.
 */
import { agentName, agentsOf } from "./agents.js";
import { apiKeys } from "./api_keys.js";
import { connections } from "./connections.js";
import { show } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { plural, start } from "./format.js";
import { SHORTCUTS } from "./shortcuts.js";
import { chooseTheme, chosenTheme, THEMES } from "./theme.js";

/**
 * `profile`: that of the open conversation, or of a new one; its details are shown first. `admin`: whether the reader
 * is an administrator.
 */
export async function openSettings(api, profile, admin) {
  const element = h("div", { class: "settings-loaded" }, h("p", { class: "muted" }, "Loading…"));
  show("Settings", themes(), element, shortcuts());
  const [offered, github, keys] = await Promise.all(
    [api.tools(), api.githubConnection(), api.keys()].map((reading) => reading.catch((problem) => problem)),
  );
  const agent = offered instanceof Error ? problemOf("Agent", offered) : agents(agentsOf(offered), profile);
  element.replaceChildren(
    agent,
    github instanceof Error ? problemOf("GitHub", github) : connections(api, github),
    keys instanceof Error ? problemOf("API keys", keys) : apiKeys(api, keys, admin),
  );
}

const problemOf = (title, problem) =>
  h("section", {}, h("h3", {}, title), h("p", { class: "problem" }, problem.message));

function themes() {
  const choice = ([value, label]) =>
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "radio",
        name: "theme",
        value,
        checked: chosenTheme() === value,
        onchange: () => chooseTheme(value),
      }),
      label,
    );
  return h("fieldset", { class: "choices" }, h("legend", {}, "Theme"), Object.entries(THEMES).map(choice));
}

function agents(all, profile) {
  const first = all.find((agent) => agent.name === profile) ?? all[0];
  const others = all.filter((agent) => agent !== first);
  return h(
    "section",
    {},
    h("h3", {}, "Agent"),
    !byId("mode").hidden && h("p", {}, byId("mode").textContent),
    first ? details(first, true) : h("p", { class: "muted" }, "There is none."),
    others.map((agent) => details(agent, false)),
    others.length > 0 &&
      h(
        "p",
        { class: "fine muted" },
        "A conversation keeps the agent that it began with: choose another one for a new conversation.",
      ),
  );
}

function details({ name, description, model, max_turns: turns, tools }, open) {
  const rows = tools.map((tool) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, tool.name),
      h("td", {}, start(tool.description, 120)),
      h("td", { class: "number" }, plural(tool.price, "credit")),
    ),
  );
  return h(
    "details",
    { class: "agent-details", open },
    h("summary", {}, agentName(name)),
    h("p", {}, description),
    h(
      "p",
      { class: "fine muted" },
      "Model ",
      h("code", {}, model),
      ` · up to ${plural(turns, "turn")} with tools`,
    ),
    tools.length === 0
      ? h("p", { class: "fine muted" }, "It has no tools.")
      : h(
          "div",
          {
            class: "table-scroll",
            tabindex: "0",
            role: "region",
            "aria-label": `Tools of ${agentName(name)}`,
          },
          h(
            "table",
            { class: "tool-table" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                ["Tool", "What it does", "A call"].map((head) => h("th", { scope: "col" }, head)),
              ),
            ),
            h("tbody", {}, rows),
          ),
        ),
  );
}

function shortcuts() {
  const keys = (all) => all.map((key, index) => [index > 0 ? "+" : "", h("kbd", {}, key)]);
  return h(
    "section",
    {},
    h("h3", {}, "Keyboard"),
    h(
      "dl",
      { class: "shortcuts" },
      SHORTCUTS.map((shortcut) => h("div", {}, h("dt", {}, keys(shortcut.keys)), h("dd", {}, shortcut.does))),
    ),
  );
}
