/**
 * The agents for a new conversation: the picker, the chosen agent's suggestions, and the agents' names.
 */
import { byId, h } from "./dom.js";
import { count, plural, start } from "./format.js";

const FIRST = "assistant"; // the default

/** `{tools, profiles}` of the API as agents, each with its whole tools. Pure. */
export function agentsOf({ tools, profiles }) {
  const known = new Map(tools.map((tool) => [tool.name, tool]));
  return profiles.map((profile) => ({
    ...profile,
    tools: profile.tools.map((name) => known.get(name)).filter(Boolean),
  }));
}

/** `course_help` as people read it: `Course help`. Pure. */
export const agentName = (profile) => {
  const words = profile.replace(/[_-]+/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export class Agents {
  #agents = [];
  #chosen = "";
  #fixed = "";
  #onSuggestion;

  /** `onSuggestion(text)`. */
  constructor(onSuggestion) {
    this.#onSuggestion = onSuggestion;
  }

  /** Whether there is a choice: with a single agent the page does not mention agents. */
  get several() {
    return this.#agents.length > 1;
  }

  /** The agent of a new conversation; empty for the server's default. */
  get chosen() {
    return this.#chosen;
  }

  /** What a tool does, by its name; empty if no agent has it. */
  describe(name) {
    return this.#agents.flatMap((agent) => agent.tools).find((tool) => tool.name === name)?.description ?? "";
  }

  /** Takes the server's tools and profiles. */
  set offered(listed) {
    this.#agents = agentsOf(listed);
    this.#chosen = (this.#find(FIRST) ?? this.#agents[0])?.name ?? "";
    this.draw(this.#fixed);
  }

  /** Shows the picker, or only the suggestions of the agent if the conversation has one. */
  draw(fixed = "") {
    this.#fixed = fixed;
    const picks = this.several && !fixed;
    byId("agents").hidden = !picks;
    byId("agents").replaceChildren(
      h("legend", {}, "Agent"),
      ...this.#agents.map((agent) => this.#choice(agent)),
    );
    this.#drawChosen();
  }

  #find(name) {
    return this.#agents.find((agent) => agent.name === name);
  }

  #choice(agent) {
    const id = `agent-${agent.name}`;
    const choose = () => {
      this.#chosen = agent.name;
      this.#drawChosen();
    };
    return h(
      "label",
      { class: "agent" },
      h("input", {
        type: "radio",
        name: "agent",
        value: agent.name,
        checked: agent.name === this.#chosen,
        "aria-labelledby": id,
        "aria-describedby": `${id}-line`,
        onchange: choose,
      }),
      h("span", { id, class: "agent-name" }, agentName(agent.name)),
      h("span", { id: `${id}-line`, class: "agent-line" }, agent.description),
    );
  }

  #drawChosen() {
    const shown = this.#find(this.#fixed || this.#chosen);
    byId("agent-tools").replaceChildren(this.several && shown ? toolList(shown) : "");
    byId("suggestions").replaceChildren(
      ...(shown?.suggestions ?? []).map((text) =>
        h(
          "li",
          {},
          h("button", { type: "button", class: "suggestion", onclick: () => this.#onSuggestion(text) }, text),
        ),
      ),
    );
  }
}

function toolList({ name, tools }) {
  if (tools.length === 0) return h("p", { class: "fine muted" }, `${agentName(name)} has no tools.`);
  return h(
    "details",
    { class: "agent-tools" },
    h("summary", {}, `${plural(tools.length, "tool")}, ${prices(tools.map((tool) => tool.price))} a call`),
    h(
      "ul",
      {},
      tools.map((tool) =>
        h(
          "li",
          {},
          h("span", { class: "tool" }, tool.name),
          h("span", { class: "price" }, plural(tool.price, "credit")),
          h("span", { class: "agent-line" }, start(tool.description, 140)),
        ),
      ),
    ),
  );
}

/** `2 credits`, or `2 to 10 credits`. */
function prices(all) {
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return least === most ? plural(most, "credit") : `${count(least)} to ${plural(most, "credit")}`;
}
