/** The documents of a collection: what is in it, files on their way in, and what became of each. */
import { isRunning, progressOf, stateText, withJob } from "../../js/corpus_upload.js";
import { announce, h, wayBack } from "../../js/dom.js";
import { bytes, count, moment } from "../../js/format.js";
import { action, focusIn, sure } from "../../js/panel.js";
import { put, sha256Of } from "../../js/uploads.js";

const LOOK_MS = 1000; // how often a job is looked at
const MOST_BYTES = 100_000_000;
const ACCEPTED = ".pdf,.docx,.pptx,.xlsx,.html,.htm,.md,.markdown,.csv,.tsv,.txt,.eml,.epub";

/** Draws them into `section`; `back()` leads to the list of collections. */
export async function showDocuments(api, section, collection, back) {
  const mayChange = !collection.shared || api.isAdmin;
  const view = {
    api,
    path: `/v1/collections/${collection.collection_id}`,
    collection,
    mayChange,
    rows: [],
    documents: [],
    cursor: null,
    busy: false,
    problem: h("div", { role: "alert", class: "panel-problem" }),
    progress: h("div", { "aria-label": "Files", role: "group" }),
    list: h("div", {}),
  };
  section.replaceChildren(
    h("p", {}, action("All collections", "", back)),
    h("h3", { tabindex: "-1", "data-focus": true }, collection.name),
    view.problem,
    mayChange ? taker(view) : "",
    view.progress,
    view.list,
  );
  focusIn(section);
  await told(view, () => read(view));
}

async function told(view, work) {
  view.problem.replaceChildren();
  try {
    await work();
  } catch (problem) {
    if (view.list.isConnected) view.problem.replaceChildren(h("p", { class: "problem" }, problem.message));
  }
}

/** Reads the first page of documents, or the next one, and draws them all. */
async function read(view, more = false) {
  const after = more ? `?cursor=${encodeURIComponent(view.cursor)}` : "";
  const page = await view.api.ask("GET", `${view.path}/documents${after}`);
  view.documents = more ? [...view.documents, ...page.documents] : page.documents;
  view.cursor = page.cursor ?? null;
  view.list.replaceChildren(
    view.documents.length > 0
      ? h(
          "ul",
          { class: "collection-documents", "aria-label": `Documents of ${view.collection.name}` },
          view.documents.map((document) => line(view, document)),
        )
      : h("p", { class: "muted" }, "It has no documents yet."),
    view.cursor ? action("Show more", "documents", () => told(view, () => read(view, true))) : "",
  );
}

function line(view, document) {
  const { title, name, kind, updated_at: updated, left_out: leftOut } = document;
  const { pages, bytes: size } = document.counts;
  const place = h("div", {});
  const remove = () =>
    told(view, async () => {
      const path = `${view.path}/documents/${document.document_id}`;
      view.rows = [];
      await watch(view, await view.api.ask("DELETE", path));
    });
  const actions = () =>
    place.replaceChildren(
      view.mayChange
        ? h(
            "p",
            { class: "notice-actions" },
            action("Delete", title, () => {
              place.replaceChildren(
                sure("Delete it? No answer finds it any more.", "Delete", wayBack(place, actions), remove),
              );
              focusIn(place);
            }),
          )
        : "",
    );
  actions();
  const facts = [
    name === title ? "" : name,
    kind.toUpperCase(),
    pages && `${count(pages)} pages`,
    size && bytes(size),
    moment(updated),
  ];
  return h(
    "li",
    {},
    h("strong", {}, title),
    h("p", { class: "fine muted" }, facts.filter(Boolean).join(" · ")),
    leftOut && h("p", { class: "fine muted" }, `Not read: ${leftOut}.`),
    place,
  );
}

// ── files on their way in ───────────────────────────────────────────────────────────────────────────────

function taker(view) {
  const picker = h("input", {
    type: "file",
    multiple: true,
    accept: ACCEPTED,
    class: "visually-hidden",
    onchange: () => {
      const files = [...picker.files];
      picker.value = "";
      take(view, files);
    },
  });
  const over = (event, is) => {
    event.preventDefault();
    event.stopPropagation(); // the message field takes drops elsewhere
    place.classList.toggle("dropping", is);
  };
  const place = h(
    "div",
    {
      class: "drop-here",
      ondragover: (event) => over(event, true),
      ondragleave: (event) => over(event, false),
      ondrop: (event) => {
        over(event, false);
        take(view, [...event.dataTransfer.files]);
      },
    },
    h("label", { class: "button primary" }, "Add files", picker),
    h(
      "span",
      { class: "muted" },
      " or drop them here: PDF, Word, PowerPoint, Excel, web pages, Markdown, CSV, text, mail, EPUB, up to 100 MB",
    ),
  );
  return place;
}

/** Why a file is not sent, as the end of a sentence that begins with its name; empty if it is. Pure. */
export function problemOf({ size }) {
  if (size === 0) return "is empty";
  return size > MOST_BYTES ? "has more than 100 MB" : "";
}

async function take(view, files) {
  if (files.length === 0 || view.busy) return;
  view.busy = true;
  await told(view, () => sent(view, files));
  view.busy = false;
}

async function sent(view, files) {
  view.rows = files.map((file) => {
    const reason = problemOf(file);
    return { name: file.name, size: file.size, state: reason ? "refused" : "waiting", reason };
  });
  const ready = [];
  for (const [at, file] of files.entries()) {
    if (view.rows[at].reason) continue;
    const mark = (state, reason = "") => {
      view.rows[at] = { ...view.rows[at], state, reason };
      drawRows(view, `Uploading: ${count(ready.length)} of ${count(files.length)} files`);
    };
    mark("uploading");
    try {
      ready.push(await uploaded(view, file));
      mark("waiting");
    } catch (problem) {
      mark("lost", problem.message);
    }
  }
  if (ready.length === 0) return drawRows(view, "No file was taken.");
  return watch(view, await view.api.ask("POST", `${view.path}/jobs`, { body: { files: ready } }));
}

async function uploaded(view, file) {
  const announced = { name: file.name.slice(-1000), size: file.size, sha256: await sha256Of(file) };
  const { uploads } = await view.api.ask("POST", `${view.path}/documents`, { body: { files: [announced] } });
  await put(view.api.reached(uploads[0]), file);
  return { upload_id: uploads[0].upload_id, name: announced.name };
}

/** Looks at a job until it has ended, then at the documents again. */
async function watch(view, started) {
  let job = started;
  for (;;) {
    view.rows = withJob(view.rows, { ...job, files: job.files ?? [] });
    drawRows(view, progressOf(job, view.rows).text);
    if (!isRunning(job) || !view.list.isConnected) break;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    job = await view.api.ask("GET", `${view.path}/jobs/${job.job_id}`);
  }
  announce(view.progress.querySelector("p")?.textContent ?? "");
  await read(view);
}

function drawRows(view, text) {
  view.progress.replaceChildren(
    h("p", {}, text),
    h(
      "ul",
      { class: "files-on-the-way" },
      view.rows.map((row) =>
        h(
          "li",
          { class: "fine" },
          `${row.name} `,
          h("span", { class: row.reason ? "problem" : "muted" }, stateText(row)),
        ),
      ),
    ),
  );
}
