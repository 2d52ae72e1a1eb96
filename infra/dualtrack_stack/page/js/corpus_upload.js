/**
 * Uploads to a corpus: which files are accepted, the state of each, and a job's progress.
 *
 * A row is a file: `{name, size, state, reason}`, with state uploading | waiting | read | refused | added |
 * replaced | skipped | lost; `waiting` before its upload and before the job has read it.
 */
import { count, plural } from "./format.js";
import { put, sha256Of } from "./uploads.js";

const FILE_BYTES = 20_000_000; // the API's own limits (CONTRACT 4)
const FILES = 200;

const STATES = {
  waiting: "waiting",
  uploading: "uploading",
  read: "read",
  added: "added",
  replaced: "replaced",
  skipped: "unchanged, skipped",
  refused: "refused",
  lost: "not uploaded",
};

/**
 * Why a file cannot be uploaded, as the end of a sentence that begins with its name; empty if it can. Pure.
 */
export function problemOf({ name, size }, index, { formats, untaken }) {
  if (index >= FILES) return `is beyond the ${FILES} files that one job takes`;
  if (size === 0) return "is empty";
  if (size > FILE_BYTES) return "has more than 20 MB";
  return formats.test(name) ? "" : untaken;
}

/** Chosen files as rows. Pure. */
export const rowsOf = (files, kind) =>
  files.map((file, index) => {
    const reason = problemOf(file, index, kind);
    return { name: file.name, size: file.size, state: reason ? "refused" : "waiting", reason };
  });

/** The rows updated with a job's progress; rows that are not the job's stay. Pure. */
export function withJob(rows, job) {
  const open = job.files.map((file) => ({
    name: file.name,
    state: file.outcome ?? file.state,
    reason: file.reason ?? "",
    problems: file.problems ?? [],
    title: file.title === file.name ? "" : (file.title ?? ""),
  }));
  return [
    ...rows
      .filter((row) => row.state === "refused" || row.state === "lost")
      .filter((row) => !open.some((other) => other.name === row.name)),
    ...open,
  ];
}

/** `refused: it is empty`. Pure. */
export function stateText({ state, reason }) {
  if (!reason) return STATES[state];
  return `${STATES[state]}: ${state === "refused" ? "it " : ""}${reason}`;
}

/**
 * `{text, value, most}` of a job: its current step and progress; `most` is 0 if unknown. `rows`: all files.
 * Pure.
 */
export function progressOf(job, rows) {
  const read = job.files.filter((file) => file.state !== "waiting").length;
  if (job.status === "failed")
    return {
      text: `The job failed. ${job.error ?? ""} What was published before is unchanged.`,
      value: 1,
      most: 1,
    };
  if (job.status === "done") return { text: `Done: ${outcome(job, rows)}.`, value: 1, most: 1 };
  if (job.status === "queued") return { text: "Waiting for its turn", value: 0, most: 0 };
  if (read < job.files.length)
    return {
      text: `Reading: ${count(read)} of ${plural(job.files.length, "file")}`,
      value: read,
      most: job.files.length,
    };
  if (job.embedded < job.to_embed)
    return {
      text: `Embedding: ${count(job.embedded)} of ${plural(job.to_embed, "text")}`,
      value: job.embedded,
      most: job.to_embed,
    };
  return { text: "Publishing", value: 0, most: 0 };
}

export const isRunning = (job) => job.status === "queued" || job.status === "running";

function outcome({ removes, reset }, rows) {
  const told = ["added", "replaced", "skipped", "refused", "lost"]
    .map((state) => [
      rows.filter((row) => row.state === state).length,
      STATES[state].replace("unchanged, ", ""),
    ])
    .filter(([number]) => number > 0)
    .map(([number, word]) => `${count(number)} ${word}`);
  if (removes.length > 0) told.push(`${count(removes.length)} removed`);
  if (reset) told.push("all else removed");
  return told.join(", ") || "nothing changed";
}

/**
 * Uploads the files in turn, each to an address that is requested right before: addresses expire.
 *
 * Resolves with a job's input, `[{upload_id, name}]`; a file that fails is reported as `lost` and left out.
 * `onState(place, state, reason)`.
 */
export async function uploadAll(api, corpus, kind, files, signal, onState) {
  const done = [];
  for (const [index, file] of files.entries()) {
    if (problemOf(file, index, kind)) continue;
    onState(index, "uploading", "");
    try {
      done.push({ upload_id: await uploaded(api, corpus, file, signal), name: file.name });
      onState(index, "waiting", "");
    } catch (problem) {
      if (signal.aborted) throw problem;
      onState(index, "lost", problem.message);
    }
  }
  return done;
}

async function uploaded(api, corpus, file, signal) {
  const announced = { name: file.name.slice(-1000), size: file.size, sha256: await sha256Of(file) };
  const upload = await api.corpusUpload(corpus, announced, signal);
  await put(upload, file, signal);
  return upload.upload_id;
}
