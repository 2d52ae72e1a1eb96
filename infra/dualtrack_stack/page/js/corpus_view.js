/**
 * A corpus as administrators see it: its documents, uploads, the job that processes them, deletion.
 */
import { CORPORA, heading, overview } from "./corpora.js";
import { isRunning, progressOf, rowsOf, stateText, uploadAll, withJob } from "./corpus_upload.js";
import { confirm } from "./dialogs.js";
import { announce, h, icon, redraw } from "./dom.js";
import { bytes, count, moment, plural } from "./format.js";

const POLL = 1000;

export class CorpusView {
  #api;
  #corpus;
  #kind;
  #onJob;
  #opened = new AbortController();
  #busy = false;
  #rows = [];
  #published = h("section", { class: "published", "aria-label": "Published", tabindex: "-1" });
  #problem = h("p", { class: "problem", role: "alert", hidden: true });
  #reset = h("input", { type: "checkbox" });
  #picker;
  #upload;
  #job = h("section", { class: "corpus-job", "aria-label": "Job", hidden: true });

  /** `onJob(jobId)`: a job has begun; empty: the view has no job any more. */
  constructor(api, element, corpus, onJob) {
    this.#api = api;
    this.#corpus = corpus;
    this.#kind = CORPORA[corpus];
    this.#onJob = onJob;
    this.#picker = h("input", {
      type: "file",
      multiple: true,
      accept: this.#kind.accept,
      class: "visually-hidden",
      onchange: () => this.#take([...this.#picker.files]),
    });
    this.#upload = h(
      "form",
      { class: "corpus-upload" },
      h(
        "p",
        {},
        h("label", { class: "button primary" }, "Choose files", this.#picker),
        h("span", { class: "muted" }, ` or drop them here: ${this.#kind.taken}, up to 20 MB each`),
      ),
      h(
        "label",
        { class: "check" },
        this.#reset,
        `Remove every ${this.#kind.document} that is not among them`,
      ),
    );
    this.#acceptDrops();
    element.replaceChildren(
      h("div", { class: "corpus" }, this.#problem, this.#upload, this.#job, this.#published),
    );
  }

  /** Shows the documents, and the job in the address, if there is one. */
  async open(jobId = "") {
    await Promise.all([this.#refresh(), jobId && this.#alone(() => this.#watch(jobId))]);
  }

  /** Stops polling; a job continues, and unfinished uploads are cancelled. */
  close() {
    this.#opened.abort();
  }

  // ── what is published ───────────────────────────────────────────────────────────────────────────

  async #refresh() {
    await this.#told(async () =>
      this.#drawPublished(await this.#api.corpus(this.#corpus, this.#opened.signal)),
    );
  }

  #drawPublished(corpus) {
    const { version, counts, updated_at: updated, documents } = corpus;
    const { document: word, columns } = this.#kind;
    if (version === null) {
      this.#published.replaceChildren(h("p", { class: "muted" }, "Nothing is published yet."));
      return;
    }
    const facts = [["Version", version], ...this.#kind.facts(corpus), ["Published", moment(updated)]];
    redraw(
      this.#published,
      h("p", { class: "overview-line" }, overview(this.#kind, documents.length, counts)),
      h(
        "dl",
        { class: "facts" },
        facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
      ),
      h(
        "table",
        { class: "documents" },
        h("caption", { class: "visually-hidden" }, `${heading(word)}s`),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            [heading(word), ...columns.map(heading), "Changed", ""].map((name) =>
              h("th", { scope: "col" }, name || h("span", { class: "visually-hidden" }, "Delete")),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          documents.map((entry) => this.#document(entry)),
        ),
      ),
    );
  }

  #document(entry) {
    return h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        entry.title,
        entry.title === entry.name ? "" : h("span", { class: "fine muted" }, entry.name),
      ),
      ...this.#kind.columns.map((name) =>
        h("td", { class: "number", "data-name": name }, count(entry.counts[name] ?? 0)),
      ),
      h("td", { class: "muted" }, moment(entry.updated_at)),
      h(
        "td",
        {},
        h(
          "button",
          {
            type: "button",
            class: "icon-button small",
            "aria-label": `Delete ${entry.title}`,
            onclick: () => this.#delete(entry),
          },
          icon("bin"),
        ),
      ),
    );
  }

  async #delete(entry) {
    if (
      this.#busy ||
      !(await confirm(`Delete the ${this.#kind.document}?`, this.#kind.deleted(entry.title), "Delete"))
    )
      return;
    this.#rows = [];
    await this.#alone(async () =>
      this.#watch((await this.#api.deleteDocument(this.#corpus, entry.document_id)).job_id),
    );
  }

  // ── files on their way in ───────────────────────────────────────────────────────────────────────

  #acceptDrops() {
    const over = (event, is) => {
      event.preventDefault();
      event.stopPropagation(); // the message field takes drops elsewhere
      this.#upload.classList.toggle("dropping", is);
    };
    this.#upload.addEventListener("submit", (event) => event.preventDefault());
    this.#upload.addEventListener("dragover", (event) => over(event, true));
    this.#upload.addEventListener("dragleave", (event) => over(event, false));
    this.#upload.addEventListener("drop", (event) => {
      over(event, false);
      this.#take([...event.dataTransfer.files]);
    });
  }

  async #take(files) {
    this.#picker.value = "";
    if (files.length === 0 || this.#busy) return;
    const reset = this.#reset.checked;
    if (
      reset &&
      !(await confirm(
        `Replace all ${this.#kind.document}s?`,
        `Every ${this.#kind.document} that is not among these files will be removed.`,
        "Replace",
      ))
    )
      return;
    this.#rows = rowsOf(files, this.#kind);
    await this.#alone(async () => {
      const ready = await this.#uploadAll(files);
      if (ready.length === 0) return this.#drawJob({ text: "No file was accepted.", value: 0, most: 0 });
      const job = await this.#api.startCorpusJob(this.#corpus, { files: ready, reset }, this.#opened.signal);
      this.#reset.checked = false;
      return this.#watch(job.job_id);
    });
  }

  #uploadAll(files) {
    const draw = () => {
      const value = this.#rows.filter((row) => row.sent || row.reason).length;
      this.#drawJob({
        text: `Uploading: ${count(value)} of ${plural(files.length, "file")}`,
        value,
        most: files.length,
      });
    };
    draw();
    return uploadAll(
      this.#api,
      this.#corpus,
      this.#kind,
      files,
      this.#opened.signal,
      (index, state, reason) => {
        this.#rows = this.#rows.map((row, at) =>
          at === index ? { ...row, state, reason, sent: state === "waiting" } : row,
        );
        draw();
      },
    );
  }

  // ── the job ─────────────────────────────────────────────────────────────────────────────────────

  async #watch(jobId) {
    this.#onJob(jobId);
    const { signal } = this.#opened;
    for (;;) {
      const job = await this.#api.corpusJob(this.#corpus, jobId, signal);
      this.#rows = withJob(this.#rows, job);
      this.#drawJob(progressOf(job, this.#rows));
      if (!isRunning(job)) break;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
    this.#onJob("");
    announce(this.#job.querySelector(".job-head").textContent);
  }

  #drawJob({ text, value, most }) {
    this.#job.hidden = false;
    const ended = most > 0 && value === most;
    this.#job.replaceChildren(
      h("p", { class: "job-head" }, text),
      this.#busy && !ended
        ? h("progress", { "aria-label": text, ...(most > 0 ? { max: most, value } : {}) })
        : "",
      h("ul", { class: "job-files", "aria-label": "Files" }, this.#rows.map(fileRow)),
    );
  }

  /**
   * One change at a time: a second one begins when the first has ended; then the documents are read again.
   */
  async #alone(work) {
    this.#setBusy(true);
    const succeeded = await this.#told(work);
    this.#setBusy(false);
    if (succeeded) await this.#refresh();
  }

  #setBusy(busy) {
    this.#busy = busy;
    this.#picker.disabled = busy;
  }

  /** Returns whether it succeeded; shows the problem if not. */
  async #told(work) {
    this.#problem.hidden = true;
    try {
      await work();
      return true;
    } catch (problem) {
      if (this.#opened.signal.aborted) return false;
      this.#problem.textContent = problem.message;
      this.#problem.hidden = false;
      return false;
    }
  }
}

function fileRow(row) {
  return h(
    "li",
    { class: `job-file ${row.state}` },
    h(
      "span",
      { class: "file-name" },
      row.name,
      row.title ? h("span", { class: "fine muted" }, row.title) : "",
      row.size ? h("span", { class: "fine muted" }, bytes(row.size)) : "",
    ),
    h(
      "div",
      { class: "job-state" },
      stateText(row),
      row.problems?.length > 0
        ? h(
            "ul",
            { class: "problems" },
            row.problems.map((line) => h("li", {}, line)),
          )
        : "",
    ),
  );
}
