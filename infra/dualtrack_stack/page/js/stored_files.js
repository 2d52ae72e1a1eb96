/**
 * Files of stored records: read with the token, shown from memory (object URLs) or in the dialog.
 */
import { loading } from "./dialogs.js";
import { h } from "./dom.js";
import { nameOf } from "./file_chip.js";
import { bytes } from "./format.js";

const PREVIEW = 20_000; // characters of a text

export class StoredFiles {
  #api;
  #read = new Map();

  constructor(api) {
    this.#api = api;
  }

  /** Frees the memory; the files are no longer on the page. */
  forget() {
    for (const reading of this.#read.values())
      reading.then(
        ({ url }) => URL.revokeObjectURL(url),
        () => {},
      );
    this.#read.clear();
  }

  /** Reads the pictures below an element that were not read yet. One that cannot be read stays empty. */
  async fill(root, conversationId, signal) {
    for (const image of root.querySelectorAll("img[data-file]:not([src])")) {
      try {
        image.src = (await this.#file(conversationId, image.dataset)).url;
      } catch (problem) {
        image.title = problem.message;
      }
      if (signal.aborted) return;
    }
  }

  /** Shows a file in the dialog: a picture or a text itself, a PDF as a link. */
  async open(conversationId, file) {
    const { type, name, size } = file;
    const show = loading(name);
    try {
      const { url, blob } = await this.#file(conversationId, file);
      const open =
        type === "application/pdf" &&
        h("a", { class: "button", href: url, target: "_blank", rel: "noopener" }, "Open");
      const buttons = h(
        "div",
        { class: "buttons" },
        open,
        h("a", { class: "button", href: url, download: name }, "Download"),
      );
      show(
        await shown(url, blob, type),
        h("p", { class: "fine muted" }, `${type}, ${bytes(Number(size))}`),
        buttons,
      );
    } catch (problem) {
      show(h("p", { class: "problem" }, problem.message));
    }
  }

  /** The files of a question, to be sent again; stored ones are read. */
  toSend(conversationId, files) {
    return Promise.all(
      files.map(async (file) => {
        if (file.file) return file;
        const { blob, url } = await this.#file(conversationId, {
          file: file.of,
          index: file.index,
          size: file.size,
          type: file.media_type,
        });
        const { name = nameOf(file), media_type, size } = file;
        return {
          file: blob,
          text: "",
          name,
          media_type,
          size,
          url: media_type.startsWith("image/") ? url : null,
        };
      }),
    );
  }

  /** `{blob, url}`, read once. */
  #file(conversationId, { file, index, size, type }) {
    const key = `${conversationId}/${file}/${index}`;
    if (!this.#read.has(key)) {
      const reading = this.#api.attachment(conversationId, file, index, Number(size)).then((parts) => {
        const blob = new Blob(parts, { type: kept(type) });
        return { blob, url: URL.createObjectURL(blob) };
      });
      reading.catch(() => this.#read.delete(key)); // the next call tries again
      this.#read.set(key, reading);
    }
    return this.#read.get(key);
  }
}

/** The media type for the browser: a text must not be opened as a page. */
const kept = (type) => (isText(type) ? "text/plain;charset=utf-8" : type);

const isText = (type) => !type.startsWith("image/") && type !== "application/pdf";

async function shown(url, blob, type) {
  if (type.startsWith("image/")) return h("img", { class: "whole", src: url, alt: "" });
  return isText(type) && textPreview(await blob.text());
}

/** The beginning of a text. */
export function textPreview(text) {
  const more = text.length > PREVIEW ? h("p", { class: "fine muted" }, "Only the beginning is shown.") : "";
  return h("div", {}, h("pre", { class: "raw", tabindex: "0" }, text.slice(0, PREVIEW)), more);
}
