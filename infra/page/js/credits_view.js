/** Credits: what is left, what was spent, and what to do when there are none. */
import { confirmWord, show } from "./dialogs.js";
import { h } from "./dom.js";
import { count, moment, plural, until } from "./format.js";

const KINDS = {
  hold: "Held",
  settle: "Charged",
  release: "Released",
  expire: "Expired",
  grant: "Granted",
  plan: "Plan",
};

const ERASED =
  "Every conversation, chat, file and connection of yours goes, chats that run are stopped, credits that are left " +
  "are lost, and you cannot sign in any more. This cannot be undone.";

/** The account: credits and its erasure, after which `onErased` is called. */
export async function openCredits(api, onErased) {
  show("Credits", h("p", { class: "muted" }, "Loading…"));
  try {
    const [balance, ledger] = await Promise.all([api.credits(), api.ledger()]);
    show("Credits", overview(balance), history(ledger.entries), erasure(api, onErased));
  } catch (problem) {
    show("Credits", h("p", { class: "problem" }, problem.message));
  }
}

function overview({ plan, available, held, daily, monthly, pack }) {
  const entries = [
    ["Plan", plan],
    ["Today", `${count(daily.used)} of ${count(daily.limit)} used, new ${until(daily.resets_at)}`],
    monthly && ["This month", `${count(monthly.used)} of ${count(monthly.limit)} used`],
    ["Pack", `${count(pack.remaining)} left`],
    held > 0 && ["Held", `${count(held)} for a chat that runs`],
  ];
  return h(
    "div",
    {},
    h("p", { class: "balance" }, h("strong", {}, count(available)), " credits left"),
    h(
      "dl",
      { class: "facts" },
      entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
  );
}

function history(entries) {
  if (entries.length === 0) return h("p", { class: "muted" }, "No movements yet.");
  return h(
    "div",
    { class: "table-scroll", tabindex: "0" },
    h(
      "table",
      { class: "ledger" },
      h("caption", {}, "Latest movements"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["When", "What", "Credits", "Left"].map((name) => h("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        entries.map((one) =>
          h(
            "tr",
            {},
            h("td", {}, moment(one.at)),
            h(
              "td",
              {},
              KINDS[one.kind] ?? one.kind,
              one.reason ? h("span", { class: "muted" }, ` ${one.reason}`) : "",
            ),
            h("td", { class: "number" }, count(one.amount)),
            h("td", { class: "number" }, count(one.available_after)),
          ),
        ),
      ),
    ),
  );
}

function erasure(api, onErased) {
  const erase = async () => {
    if (!(await confirmWord("Erase my account", ERASED, "erase", "Erase everything"))) return;
    try {
      await api.eraseMe();
      onErased();
    } catch (problem) {
      show("Erase my account", h("p", { class: "problem" }, problem.message));
    }
  };
  return h(
    "section",
    {},
    h("h3", {}, "Account"),
    h("button", { type: "button", class: "link-button", onclick: erase }, "Erase my account…"),
  );
}

/** What a 402 means and what helps, from the error itself. */
export function shortageNotice({ required, available, resets_at: resets, upgrade }, grants) {
  const plans = (upgrade?.plans ?? []).filter((plan) => plan.dollars_per_month > 0);
  const packs = upgrade?.packs ?? [];
  return [
    h(
      "p",
      {},
      h("strong", {}, "Not enough credits. "),
      `A chat needs ${count(required)}, you have ${count(available)}.`,
    ),
    h(
      "ul",
      {},
      resets ? h("li", {}, `New credits come ${until(resets)} (at 00:00 UTC).`) : "",
      grants ? h("li", {}, "On this machine the command ", h("code", {}, grants), " gives you more.") : "",
      plans.map((plan) =>
        h(
          "li",
          {},
          `Plan ${plan.name}: ${plural(plan.credits_per_day, "credit")} a day for $${plan.dollars_per_month} a month.`,
        ),
      ),
      packs.map((pack) =>
        h("li", {}, `A pack of ${plural(pack.credits, "credit")} for $${pack.dollars}, which never expires.`),
      ),
      grants ? "" : h("li", {}, "Ask whoever runs this service to change your plan or to add a pack."),
    ),
  ];
}
