/** All branches that part at a question, each with its version of the question. */

import { placeIn } from "./branch_links.js";
import { close, show } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { moment } from "./format.js";
import { askedIn } from "./questions.js";

const MOST = 100;

/** `branches`: `{at, ids}` of `branchesOf`; `known`: the conversations by id. */
export async function openBranches(api, number, { at, ids }, known) {
  const rows = ids.slice(0, MOST).map((id, index) => row(id, number, known.get(id), index === at));
  show(
    `Branches at question ${number}`,
    h("ol", { class: "branch-list" }, rows),
    ids.length > MOST && h("p", { class: "fine muted" }, `The first ${MOST} are shown.`),
  );
  byId("dialog-body").querySelector("[aria-current]")?.focus();
  for (const [index, element] of rows.entries()) {
    if (!element.isConnected || !byId("dialog").open) return;
    element.querySelector(".branch-text").textContent = await askedIn(api, ids[index], number);
  }
}

function row(id, number, conversation, isHere) {
  const when = conversation ? moment(conversation.created_at) : "";
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", "aria-current": isHere ? "true" : null, onclick: () => go(placeIn(id, number)) },
      h("span", { class: "branch-text" }, "…"),
      h("span", { class: "fine muted" }, isHere ? `${when} · this one` : when),
    ),
  );
}

function go(hash) {
  close();
  location.hash = hash;
}
