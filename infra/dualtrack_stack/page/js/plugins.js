/** What plug-ins add to the page: docs/page.md, "A plug-in's part". */
import { drawn, h } from "./dom.js";
import { load } from "./patience.js";
import { stylesheet } from "./stylesheet.js";

let plugins = [];

/** `listed`: of config.json: each plug-in's `page.json` with its `name`, and whether it is `styled`. */
export function usePlugins(listed = []) {
  plugins = listed;
}

/** The buttons that open panels. */
export const panelButtons = (api, onLeave) =>
  plugins
    .filter(({ label }) => label)
    .map((plugin) =>
      h(
        "button",
        {
          type: "button",
          class: "link-button",
          "aria-haspopup": "dialog",
          "data-panel": plugin.name,
          onclick: async () => (await panelOf(plugin)).open(api, onLeave),
        },
        plugin.label,
      ),
    );

const styles = new Map();

async function panelOf({ name, styled }) {
  const folder = `plugins/${name}`;
  if (styled && !styles.has(name)) styles.set(name, stylesheet(`${folder}/panel.css`));
  const panel = await load(() => import(`../${folder}/panel.js`));
  await styles.get(name);
  return panel;
}

/** What stands before the title of a conversation that plug-ins know. */
export const marksOf = (conversation) =>
  plugins
    .filter(({ mark }) => mark && conversation[mark.field])
    .map(({ mark }) =>
      h(
        "span",
        { class: "plugin-mark" },
        drawn(mark.icon),
        h("span", { class: "visually-hidden" }, `${mark.label}: `),
      ),
    );

/** Words for events that a program may be told of: the given ones, then those of plug-ins. */
export const eventWords = (own) => Object.assign({}, own, ...plugins.map(({ events }) => events));

/** What an API key with a scope may do. */
export const scopeWords = (scope, own) =>
  [own, ...plugins.map(({ scopes }) => scopes?.[scope])].filter(Boolean).join(" and ");
