/**
 * Files on their way: those of a message in its request or, where they have no room in it, by an upload before
 * it; those of a corpus by uploads.
 */
import { Refusal, Unreachable } from "./api.js";

const ROOM = 4 * 1024 * 1024; // of the files in a request
const MARGIN = 60_000; // milliseconds before an upload expires in which none begins with it
const GONE = new Set(["not_found", "expired", "upload_missing", "upload_used"]);

const uploads = new WeakMap(); // a file → the promise of its upload, which a repeated request names again
const arrived = new WeakSet(); // uploads whose file has been put

/**
 * The files in the API's form. `onShare(share)` is called as the uploads go on; they end with `signal`, whose
 * reason is thrown then.
 */
export function toAttachments(api, files, { signal, onShare = () => {} } = {}) {
  const large = withoutRoom(files);
  const total = [...large].reduce((sum, { size }) => sum + size, 0);
  const sent = new Map();
  const onSent = (file) => (bytes) => {
    sent.set(file, bytes);
    onShare([...sent.values()].reduce((sum, each) => sum + each, 0) / total);
  };
  return Promise.all(
    files.map(async (file) =>
      large.has(file)
        ? { upload_id: await uploaded(api, file, signal, onSent(file)) }
        : { media_type: file.media_type, name: nameOf(file), data: await base64(file.file) },
    ),
  );
}

/** Forgets the uploads of files whose message was accepted, or refused (`problem`) because of them. */
export function forgetUploads(files, problem) {
  if (!problem || GONE.has(problem.code)) for (const { file } of files) uploads.delete(file);
}

/** The largest files, without which the others fit into a request. Pure. */
export function withoutRoom(files) {
  let taken = 0;
  return new Set(
    [...files]
      .sort((one, other) => one.size - other.size)
      .filter(({ size }) => {
        taken += size;
        return taken > ROOM;
      }),
  );
}

/** What was stopped or cut off goes to the same address. */
async function uploaded(api, file, signal, onSent) {
  onSent(0);
  const upload = await Promise.race([announced(api, file), endOf(signal)]);
  if (!arrived.has(upload)) {
    try {
      await put(upload, file.file, signal, onSent);
    } catch (problem) {
      if (problem instanceof Refusal) uploads.delete(file.file); // its signature has ended
      throw problem;
    }
    arrived.add(upload);
  }
  onSent(file.size);
  return upload.upload_id;
}

/** Announced once, also where its sender stops before the answer has come, since few may be open. */
async function announced(api, file) {
  const before = await uploads.get(file.file)?.catch(() => null);
  if (before && Date.parse(before.expires_at) - Date.now() > MARGIN) return before;
  const upload = announce(api, file);
  uploads.set(file.file, upload);
  return upload;
}

async function announce(api, file) {
  const sha256 = await sha256Of(file.file);
  return api.upload({ media_type: file.media_type, bytes: file.size, name: nameOf(file), sha256 });
}

/** Never resolves; rejects with the signal's reason, if there is one. */
function endOf(signal) {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Puts a file to its signed address, which needs no token; `onSent(bytes)` is called as it goes. */
export function put({ url, method, headers }, file, signal, onSent = () => {}) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest(); // fetch does not say how much has been sent
    const quit = () => request.abort();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded }) => onSent(Math.min(loaded, file.size)));
    request.addEventListener("load", () =>
      request.status < 300
        ? resolve()
        : reject(new Refusal(request.status, { message: `the storage answered with ${request.status}` })),
    );
    request.addEventListener("error", () => reject(new Unreachable()));
    request.addEventListener("abort", () => reject(signal.reason));
    request.addEventListener("loadend", () => signal?.removeEventListener("abort", quit));
    signal?.addEventListener("abort", quit);
    request.send(file);
  });
}

/** The SHA-256 of a file's bytes in hex: its address takes no others. */
export async function sha256Of(file) {
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const nameOf = ({ name }) => name.slice(-1000);

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
