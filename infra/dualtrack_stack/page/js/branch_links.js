/** Links between the branches that part at a question: ‹ 2/3 ›. */
import { h, icon } from "./dom.js";

export const placeIn = (conversationId, number) => `#${conversationId}/q${number}`;

/**
 * `branches`: `{at, ids}` of `branchesOf`, and `asked`, what the ones beside this one ask. The figure opens a list of
 * all branches.
 */
export function branchLinks(number, { at, ids, asked }) {
  const shown = `${at + 1}/${ids.length}`;
  return h(
    "span",
    { class: "branch-links", role: "group", "aria-label": `Branches at question ${number}` },
    way("left", "Previous", at - 1, number, ids, asked),
    h(
      "button",
      {
        type: "button",
        class: "branch-figure",
        "data-branches": number,
        "aria-label": `${shown}, show the branches at question ${number}`,
      },
      shown,
    ),
    way("right", "Next", at + 1, number, ids, asked),
  );
}

function way(sign, word, to, number, ids, asked = {}) {
  const id = ids[to];
  const instead = asked[id] ? `: ${asked[id]}` : "";
  // the first and the last have one link; the gap keeps the other in its position
  return h(
    "a",
    {
      class: "icon-button small",
      href: id && placeIn(id, number),
      role: id ? null : "link",
      "aria-disabled": id ? null : "true",
      title: asked[id],
      "aria-label": id
        ? `${word} branch, ${to + 1} of ${ids.length}${instead}`
        : `${word} branch: there is none`,
      "data-way": sign,
    },
    icon(sign),
  );
}
