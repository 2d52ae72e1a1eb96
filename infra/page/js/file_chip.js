/** A file as a chip: a small picture or an icon, its name, its size; a stored one opens on a click. */
import { h, icon } from "./dom.js";
import { bytes } from "./format.js";

/** A record's files, with where each is read: `of` the record, `place` from 1. Pure. */
export const placed = (attachments, recordId) =>
  (attachments ?? []).map((one, index) => ({ ...one, of: recordId, place: index + 1 }));

export const nameOf = (one) => one.name || one.media_type.replace(/^.*\//, "").toUpperCase();

export function fileChips(files) {
  return files.length > 0
    ? h("ul", { class: "files", "aria-label": "Attachments" }, files.map(fileChip))
    : "";
}

function fileChip(one) {
  const stored = one.of && {
    "data-file": one.of,
    "data-place": one.place,
    "data-size": one.size,
    "data-type": one.media_type,
    "data-name": nameOf(one),
  };
  return h(
    "li",
    { class: "file" },
    picture(one, stored),
    stored
      ? h(
          "button",
          { type: "button", class: "link-button file-name", "aria-label": `Open ${nameOf(one)}`, ...stored },
          nameOf(one),
        )
      : h("span", { class: "file-name" }, nameOf(one)),
    h("span", { class: "muted" }, bytes(one.size)),
  );
}

/** A stored picture has no address: `StoredFiles.fill` reads it with the token. */
function picture(one, stored) {
  if (one.url) return h("img", { src: one.url, alt: "" });
  return stored && one.media_type.startsWith("image/") ? h("img", { alt: "", ...stored }) : icon("file");
}
