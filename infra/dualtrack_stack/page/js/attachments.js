/** A message's files: chosen, dropped or pasted, within the API's limits. */

import { show } from "./dialogs.js";
import { byId, h, icon } from "./dom.js";
import { bytes } from "./format.js";
import { textPreview } from "./stored_files.js";

const VIEWABLE = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]);
const MOST = 5;
const TEXTS = [
  /^text\/[a-z0-9][a-z0-9!#$&^_.+-]*$/,
  /^application\/([a-z0-9][a-z0-9!#$&^_.-]*\+)?(json|xml|yaml)$/,
  /^application\/(toml|sql|javascript)$/,
];
const TOGETHER = 50_000_000;
const VIEWABLE_TOGETHER = 15 * 1024 * 1024;
const IMAGE = 3.75 * 1024 * 1024;
const PDF = 10 * 1024 * 1024;
const TEXT_KEPT = 4 * 1024 * 1024;

export class Attachments {
  #files = [];
  #list = byId("files");
  #onProblem;
  #onChange;

  /** `onProblem(text)`, `onChange()` when the reader has added or removed a file. */
  constructor(onProblem, onChange) {
    this.#onProblem = onProblem;
    this.#onChange = onChange;
    byId("attach").append(icon("attach"));
    byId("attach").addEventListener("click", () => byId("picker").click());
    byId("picker").addEventListener("change", () => {
      this.add(byId("picker").files);
      byId("picker").value = "";
    });
    byId("message").addEventListener("paste", (event) => {
      if (event.clipboardData.files.length > 0) this.add(event.clipboardData.files);
    });
    this.#acceptDrops(byId("main"), byId("drop"));
  }

  get files() {
    return this.#files;
  }

  set files(files) {
    this.#files = files;
    this.#draw();
  }

  /** Adds the files that are allowed; returns whether all were. */
  async add(chosen) {
    const problems = [];
    const files = [...chosen]; // a picker's own list empties while a text is read
    for (const file of files) {
      const tooMuch = this.#tooMuch(file);
      const text = tooMuch || VIEWABLE.has(file.type) ? "" : await textOf(file);
      const problem = tooMuch || wrong(file, text) || this.#tooMuch(file); // others may have been added meanwhile
      if (problem) problems.push(problem);
      else this.#files = [...this.#files, added(file, text)];
    }
    this.#onProblem([...problems, ...this.#shortened()].join(" "));
    this.#draw();
    this.#onChange();
    return problems.length === 0;
  }

  #tooMuch(file) {
    if (this.#files.length >= MOST)
      return `${file.name} was left out: a message takes at most ${MOST} files.`;
    const isPdf = file.type === "application/pdf";
    const isViewable = VIEWABLE.has(file.type);
    const leftOut = (why) => `${file.name} was left out: ${why}.`;
    if (isPdf && file.size > PDF) return leftOut("a PDF may have 10 MB");
    if (isViewable && !isPdf && file.size > IMAGE) return leftOut("an image may have 3.9 MB");
    if (sizeOf([...this.#files, file]) > TOGETHER) return leftOut("files may have 50 MB together");
    if (isViewable && sizeOf([...this.#viewable, file]) > VIEWABLE_TOGETHER)
      return leftOut("images and PDFs may have 15 MB together");
    return "";
  }

  get #viewable() {
    return this.#files.filter((file) => VIEWABLE.has(file.media_type));
  }

  /** What of the files is not kept, said before they are sent. */
  #shortened() {
    const text = sizeOf(this.#files) - sizeOf(this.#viewable);
    if (text <= TEXT_KEPT) return [];
    return [`The files have ${bytes(text)} of text: 4 MB are kept, of the longest the beginning.`];
  }

  #draw() {
    this.#list.hidden = this.#files.length === 0;
    this.#list.replaceChildren(...this.#files.map((file) => this.#item(file)));
  }

  #item(file) {
    const remove = () => {
      this.files = this.#files.filter((other) => other !== file);
      this.#onChange();
      byId("message").focus();
    };
    return h(
      "li",
      { class: "file" },
      file.url ? h("img", { src: file.url, alt: "" }) : icon("file"),
      file.text
        ? h(
            "button",
            {
              type: "button",
              class: "link-button file-name",
              "aria-label": `Preview ${file.name}`,
              onclick: () => show(file.name, textPreview(file.text)),
            },
            file.name,
          )
        : h("span", { class: "file-name" }, file.name),
      h("span", { class: "muted" }, bytes(file.size)),
      h(
        "button",
        { type: "button", class: "icon-button small", "aria-label": `Remove ${file.name}`, onclick: remove },
        icon("close"),
      ),
    );
  }

  #acceptDrops(area, veil) {
    const carriesFiles = (event) => [...event.dataTransfer.types].includes("Files");
    area.addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      veil.hidden = false;
    });
    area.addEventListener("dragleave", (event) => {
      if (!area.contains(event.relatedTarget)) veil.hidden = true;
    });
    area.addEventListener("drop", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      veil.hidden = true;
      this.add(event.dataTransfer.files);
    });
  }
}

const sizeOf = (files) => files.reduce((sum, { size }) => sum + size, 0);

/** A file's text; null if it is no text. Its content decides, because systems know few types of text. */
async function textOf(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

function wrong(file, text) {
  if (file.size === 0) return `${file.name} is empty.`;
  return text === null ? `${file.name} is neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text.` : "";
}

function added(file, text) {
  const type =
    VIEWABLE.has(file.type) || TEXTS.some((pattern) => pattern.test(file.type)) ? file.type : "text/plain";
  return {
    file,
    text,
    name: file.name,
    media_type: type,
    size: file.size,
    url: type.startsWith("image/") ? URL.createObjectURL(file) : null,
  };
}
