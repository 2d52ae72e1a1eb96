/** Files to send along: chosen, dropped or pasted, within the API's limits. */
import { byId, h, icon } from "./dom.js";
import { bytes } from "./format.js";

const TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]);
const MOST = 5;
const TOGETHER = 4 * 1024 * 1024;

export class Attachments {
  #files = [];
  #list = byId("files");
  #onProblem;

  constructor(onProblem) {
    this.#onProblem = onProblem;
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

  add(chosen) {
    const problems = [];
    for (const file of chosen) {
      const problem = this.#wrong(file);
      if (problem) problems.push(problem);
      else this.#files = [...this.#files, { file, name: file.name, media_type: file.type, size: file.size, url: file.type.startsWith("image/") ? URL.createObjectURL(file) : null }];
    }
    this.#onProblem(problems.join(" "));
    this.#draw();
  }

  #wrong(file) {
    if (!TYPES.has(file.type)) return `${file.name} is neither an image (PNG, JPEG, GIF, WebP) nor a PDF.`;
    if (this.#files.length >= MOST) return `${file.name} was left out: a message takes at most ${MOST} files.`;
    const size = this.#files.reduce((sum, one) => sum + one.size, file.size);
    if (size > TOGETHER) return `${file.name} was left out: files may have 4 MB together.`;
    return "";
  }

  #draw() {
    this.#list.hidden = this.#files.length === 0;
    this.#list.replaceChildren(...this.#files.map((one) => this.#item(one)));
  }

  #item(one) {
    const remove = () => {
      this.files = this.#files.filter((other) => other !== one);
      byId("message").focus();
    };
    return h(
      "li",
      { class: "file" },
      one.url ? h("img", { src: one.url, alt: "" }) : icon("file"),
      h("span", { class: "file-name" }, one.name),
      h("span", { class: "muted" }, bytes(one.size)),
      h("button", { type: "button", class: "icon-button small", "aria-label": `Remove ${one.name}`, onclick: remove }, icon("close")),
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

/** The files as the API takes them. */
export function encoded(files) {
  return Promise.all(files.map(async ({ file, media_type: type }) => ({ media_type: type, data: await base64(file) })));
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
