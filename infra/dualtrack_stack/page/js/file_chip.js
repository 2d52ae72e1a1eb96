/** A file as a chip: a small picture or an icon, its name, its size; a stored file opens on a click. */
import { h, icon } from "./dom.js";
import { bytes } from "./format.js";

/** A record's files, with their addresses: `of` the record, `index` from 1. Pure. */
export const placed = (attachments, recordId) =>
  (attachments ?? []).map((attachment, index) => ({ ...attachment, of: recordId, index: index + 1 }));

export const nameOf = (file) => file.name || file.media_type.replace(/^.*\//, "").toUpperCase();

export function fileChips(files) {
  return files.length > 0
    ? h("ul", { class: "files", "aria-label": "Attachments" }, files.map(fileChip))
    : "";
}

function fileChip(file) {
  const stored = file.of && {
    "data-file": file.of,
    "data-index": file.index,
    "data-size": file.size,
    "data-type": file.media_type,
    "data-name": nameOf(file),
  };
  return h(
    "li",
    { class: "file" },
    picture(file, stored),
    stored
      ? h(
          "button",
          { type: "button", class: "link-button file-name", "aria-label": `Open ${nameOf(file)}`, ...stored },
          nameOf(file),
        )
      : h("span", { class: "file-name" }, nameOf(file)),
    h("span", { class: "muted" }, bytes(file.size)),
  );
}

/** A stored picture has no public address: `StoredFiles.fill` reads it with the token. */
function picture(file, stored) {
  if (file.url) return h("img", { src: file.url, alt: "" });
  return stored && file.media_type.startsWith("image/") ? h("img", { alt: "", ...stored }) : icon("file");
}
