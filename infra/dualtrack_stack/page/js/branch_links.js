/** Links between the branches that part at a question: ‹ 2/3 ›. */
import { h, icon } from "./dom.js";

export const placeIn = (conversationId, number) => `#${conversationId}/q${number}`;

/** `branches`: `{at, ids}` of `branchesOf`. The figure opens a list of all branches. */
export function branchLinks(number, { at, ids }) {
  const shown = `${at + 1}/${ids.length}`;
  return h(
    "span",
    { class: "branch-links", role: "group", "aria-label": `Branches at question ${number}` },
    way("left", "Previous", at - 1, number, ids),
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
    way("right", "Next", at + 1, number, ids),
  );
}

function way(sign, word, to, number, ids) {
  const id = ids[to];
  // the first and the last have one link; the gap keeps the other in its position
  return h(
    "a",
    {
      class: "icon-button small",
      href: id && placeIn(id, number),
      role: id ? null : "link",
      "aria-disabled": id ? null : "true",
      "aria-label": id ? `${word} branch, ${to + 1} of ${ids.length}` : `${word} branch: there is none`,
      "data-way": sign,
    },
    icon(sign),
  );
}
