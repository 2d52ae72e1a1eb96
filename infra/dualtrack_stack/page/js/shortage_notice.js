/** What a reader without enough credits can do. */
import { h } from "./dom.js";
import { count, plural, until } from "./format.js";

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
