/** API keys in the settings: make one and copy it once, see what it uses, change its caps, rotate, revoke. */
import { h, wayBack } from "./dom.js";
import { count, moment } from "./format.js";
import { action, focusIn, sending, shownOnce, sure } from "./panel.js";
import { scopeWords } from "./plugins.js";

const SCOPES = {
  chat: "start chats, and read those",
  read: "read all of your conversations",
  decide: "decide for paused chats",
  hooks: "", // of plug-ins
  erase: "erase end users",
  "admin:read": "read every user's figures",
  "admin:grant": "grant credits and plans",
};
const CAPS = {
  credits_day: "Credits a day",
  credits_total: "Credits in total",
  dollars_day: "Dollars a day",
  dollars_total: "Dollars in total",
};
const MOST = 20; // keys of a user
const DAY = 86_400;

/** `listed`: the API's keys; `admin`: whether the reader may give a key an administrator's scopes. */
export function apiKeys(api, listed, admin) {
  const section = h("section", { class: "api-keys", tabindex: "-1" });
  draw({ api, section, admin, keys: listed.keys });
  return section;
}

/** `made`: a key that was made or rotated just now, shown this once; `problem`: what the API has refused. */
function draw(view, { made = null, problem = "" } = {}) {
  const { keys } = view;
  view.section.replaceChildren(
    h("h3", {}, "API keys"),
    h(
      "p",
      { class: "fine muted" },
      "For programs that call this API in your name and on your credits. ",
      h("a", { href: "docs.html" }, "API"),
    ),
    ...[
      problem && h("p", { class: "problem", role: "alert" }, problem),
      made && shownOnce(`The key “${made.name}”. Copy it now: it is not shown again.`, made.key),
      keys.length > 0 &&
        h(
          "ul",
          { class: "boxed-list" },
          keys.map((key) => line(view, key)),
        ),
      keys.length < MOST
        ? maker(view)
        : h("p", { class: "fine muted" }, `You have ${MOST}, which is the most: revoke one to make another.`),
    ].filter(Boolean),
  );
}

/** Does something with the API, reads the keys again and draws them; the key of `act`'s result is shown. */
async function changed(view, act) {
  const done = await act();
  view.keys = (await view.api.keys()).keys;
  draw(view, { made: done?.key ? done : null });
  focusIn(view.section);
}

/** The same for an action without a form; what the API refuses is said above the list. */
const change = (view, act) => changed(view, act).catch((problem) => draw(view, { problem: problem.message }));

function line(view, key) {
  const { api } = view;
  const act = (text, onclick) => action(text, key.name, onclick);
  const item = h("li", {});
  const show = (...content) => item.replaceChildren(...head(key), ...content);
  const instead = (asked) => {
    show(asked(wayBack(item, actions)));
    focusIn(item);
  };
  const actions = () =>
    show(
      h(
        "p",
        { class: "notice-actions" },
        act("Change", () => instead((back) => capsForm(view, key, back))),
        act("Rotate", () =>
          instead((back) =>
            sure("Make a new secret? The old one works for another 24 hours.", "Rotate", back, () =>
              change(view, () => api.rotateKey(key.key_id)),
            ),
          ),
        ),
        act("Revoke", () =>
          instead((back) =>
            sure("Revoke it? Its next request is refused; this cannot be undone.", "Revoke", back, () =>
              change(view, () => api.revokeKey(key.key_id)),
            ),
          ),
        ),
      ),
    );
  actions();
  return item;
}

function head({ name, scopes, acts_for: service, last_used_at: used, expires_at: expires, ...figures }) {
  const facts = [
    scopes.join(", "),
    service && "for end users of a service",
    used ? `last used ${moment(used)}` : "never used",
    expires && `expires ${moment(expires)}`,
  ];
  return [
    h("strong", {}, name),
    h("p", { class: "fine muted" }, facts.filter(Boolean).join(" · ")),
    h(
      "p",
      { class: "fine" },
      Object.keys(CAPS)
        .map((cap) => spent(cap, figures))
        .filter(Boolean)
        .join(" · "),
    ),
  ];
}

/** `Dollars a day: $0.12 of $2, $0.25 held`; caps that there are not are left out, but the totals. */
function spent(name, { caps, used, held }) {
  const cap = caps[name];
  if (cap === undefined && !name.endsWith("_total")) return "";
  const of = cap === undefined ? "" : ` of ${amount(name, cap)}`;
  const holds = held[name] > 0 ? `, ${amount(name, held[name])} held` : "";
  return `${CAPS[name]}: ${amount(name, used[name])}${of}${holds}`;
}

const amount = (name, value) => (name.startsWith("dollars") ? `$${Number(value.toFixed(4))}` : count(value));

const nameField = (more) => h("input", { name: "key_name", required: true, maxlength: 100, ...more });

const capFields = (caps = {}) =>
  Object.entries(CAPS).map(([name, label]) =>
    h(
      "label",
      {},
      label,
      h("input", {
        name,
        type: "number",
        min: 0,
        step: name.startsWith("dollars") ? "any" : 1,
        value: caps[name],
        placeholder: "no cap",
      }),
    ),
  );

/** The caps in a form; an empty field is no cap. */
const capsOf = (form) =>
  Object.fromEntries(
    Object.keys(CAPS).map((name) => [
      name,
      form.elements[name].value === "" ? null : form.elements[name].valueAsNumber,
    ]),
  );

function capsForm(view, key, back) {
  const save = (form) => {
    const name = form.elements.key_name.value.trim();
    return changed(view, () => view.api.changeKey(key.key_id, { name, caps: capsOf(form) }));
  };
  return sending(
    save,
    h("label", {}, "Name", nameField({ value: key.name, "data-focus": true })),
    h("div", { class: "field-row" }, capFields(key.caps)),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", class: "button", onclick: back }, "Cancel"),
      h("button", { class: "button primary" }, "Save"),
    ),
  );
}

function maker(view) {
  const make = (form) => {
    const { elements } = form;
    const caps = Object.fromEntries(Object.entries(capsOf(form)).filter(([, cap]) => cap !== null));
    const days = elements.days.valueAsNumber;
    return changed(view, () =>
      view.api.makeKey({
        name: elements.key_name.value.trim(),
        scopes: Object.keys(SCOPES).filter((scope) => elements[scope]?.checked),
        ...(Object.keys(caps).length > 0 && { caps }),
        ...(days > 0 && { expires_in: Math.round(days * DAY) }),
        ...(elements.acts_for.checked && { acts_for: "any" }),
      }),
    );
  };
  const scopes = Object.entries(SCOPES)
    .filter(([scope]) => view.admin || !scope.startsWith("admin:"))
    .map(([scope, may]) => [scope, scopeWords(scope, may)])
    .filter(([, words]) => words);
  return h(
    "details",
    { class: "agent-details" },
    h("summary", {}, "Make a key"),
    sending(
      make,
      h("label", {}, "Name", nameField({})),
      h(
        "fieldset",
        { class: "choices" },
        h("legend", {}, "It may"),
        scopes.map(([scope, words]) =>
          h(
            "label",
            { class: "check" },
            h("input", { type: "checkbox", name: scope, checked: scope === "chat" }),
            words,
          ),
        ),
      ),
      h("div", { class: "field-row" }, capFields()),
      h(
        "label",
        {},
        "Days until it expires; empty: never",
        h("input", { name: "days", type: "number", min: 0, step: "any" }),
      ),
      h(
        "label",
        { class: "check" },
        h("input", { type: "checkbox", name: "acts_for" }),
        "For a service: each request names one of its own users (X-Dualtrack-User)",
      ),
      h("button", { class: "button primary" }, "Make the key"),
    ),
  );
}
