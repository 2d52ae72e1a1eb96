/** The HTTP API: a method for each use case; every failure is a `Refusal` or an `Unreachable`. */

import { patiently } from "./patience.js";
import { isAdmin } from "./session.js";

/** An error of the API: its `code` and `message`; `detail` is the whole error. */
export class Refusal extends Error {
  constructor(status, detail) {
    super(detail.message ?? "The request failed.");
    this.status = status;
    this.code = detail.code ?? "internal";
    this.detail = detail;
  }
}

/** There was no response. */
export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached.");
  }
}

export class Api {
  #base;
  #session;
  #onSignedOut;
  #uploads;

  /**
   * `uploads`: the origin through which signed addresses are reached (empty: the page's), if not their own.
   */
  constructor({ api, uploads }, session, onSignedOut) {
    this.#base = api.replace(/\/$/, "");
    this.#uploads = uploads;
    this.#session = session;
    this.#onSignedOut = onSignedOut;
  }

  /** Whether its user is an administrator: what it hides from others the API would refuse. */
  get isAdmin() {
    return isAdmin(this.#session);
  }

  /** A successful response. Renews the token once. */
  async open(method, path, { body, headers = {}, signal } = {}) {
    const { token } = this.#session;
    let response = await this.#send(method, path, body, headers, signal);
    if (response.status === 401 && (await this.#renewed(token))) {
      response = await this.#send(method, path, body, headers, signal);
    }
    if (response.ok) return response;
    if (response.status === 401) this.#onSignedOut();
    throw new Refusal(response.status, await errorOf(response));
  }

  /**
   * Whether there is a newer token than the refused one; it may have been renewed while the response was
   * pending.
   */
  #renewed(refused) {
    return this.#session.token === refused
      ? this.#session.renew()
      : Promise.resolve(Boolean(this.#session.token));
  }

  async #send(method, path, body, headers, signal) {
    const sent = { ...headers, Authorization: `Bearer ${this.#session.token}` };
    if (body !== undefined) sent["Content-Type"] = "application/json";
    try {
      return await fetch(`${this.#base}${path}`, {
        method,
        headers: sent,
        signal,
        cache: "no-store",
        body: body && JSON.stringify(body),
      });
    } catch (problem) {
      if (signal?.aborted) throw problem;
      throw new Unreachable();
    }
  }

  /**
   * What the API answers, as JSON; null for no content. What is read, or has an idempotency `key`, is asked again after
   * a lost connection. `options`: `key`, and those of `open`.
   */
  ask(method, path, { key, ...options } = {}) {
    const headers = key && { "Idempotency-Key": key };
    const once = async () => {
      const response = await this.open(method, path, { ...options, headers });
      return response.status === 204 ? null : whole(() => response.json(), options.signal);
    };
    if (method === "GET") return patiently(once, isPassingRead);
    return key ? patiently(once, isPassing) : once();
  }

  startChat(body, key) {
    return this.ask("POST", "/v1/chats", { body, key });
  }

  /** Where a file of a message is put (`put` of uploads.js). */
  async upload(about) {
    return this.reached(await this.ask("POST", "/v1/uploads", { body: about }));
  }

  chat(chatId, signal) {
    return this.ask("GET", `/v1/chats/${chatId}`, { signal });
  }

  cancelChat(chatId) {
    return this.ask("DELETE", `/v1/chats/${chatId}`);
  }

  /** Decides about calls of a paused chat. */
  decide(chatId, decisions) {
    return this.ask("POST", `/v1/chats/${chatId}/decisions`, { body: { decisions } });
  }

  /** Takes back what a decision has allowed for a conversation. */
  disallow(conversationId, tool) {
    return this.ask("DELETE", `/v1/conversations/${conversationId}/allowed/${encodeURIComponent(tool)}`);
  }

  /** The chats that wait for this user. */
  pauses() {
    return this.ask("GET", "/v1/pauses");
  }

  /** A page of the conversations by their last query; with `searched` only those that contain its words. */
  conversations(cursor = "", searched = "") {
    const after = cursor && `&cursor=${encodeURIComponent(cursor)}`;
    const words = searched && `&q=${encodeURIComponent(searched)}`;
    return this.ask("GET", `/v1/conversations?limit=50${after}${words}`);
  }

  receipt(chatId) {
    return this.ask("GET", `/v1/chats/${chatId}/receipt`);
  }

  /** The conversation with all records of a track, page by page; `onPage(records)` is called for each. */
  async conversation(conversationId, track, signal, onPage = () => {}) {
    let whole = null;
    let cursor = "";
    do {
      const query = `track=${track}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
      const page = await this.ask("GET", `/v1/conversations/${conversationId}?${query}`, { signal });
      whole = whole ? { ...whole, records: [...whole.records, ...page.records] } : page;
      onPage(page.records);
      cursor = page.cursor ?? "";
    } while (cursor);
    return whole;
  }

  /** The conversation without all of its records. */
  conversationHead(conversationId, signal) {
    return this.ask("GET", `/v1/conversations/${conversationId}?track=summarised`, { signal });
  }

  /** The newest forks of a conversation. */
  forks(conversationId, signal) {
    return this.ask("GET", `/v1/conversations?limit=100&forked_from=${conversationId}`, { signal });
  }

  /** A new conversation that shares the questions before one. */
  fork(conversationId, before, key) {
    return this.ask("POST", `/v1/conversations/${conversationId}/fork`, {
      body: { before },
      key,
    });
  }

  renameConversation(conversationId, title) {
    return this.ask("PATCH", `/v1/conversations/${conversationId}`, { body: { title } });
  }

  deleteConversation(conversationId) {
    return this.ask("DELETE", `/v1/conversations/${conversationId}`);
  }

  /** A record with all of its text, read in pieces. */
  async record(conversationId, recordId) {
    const path = `/v1/conversations/${conversationId}/records/${encodeURIComponent(recordId)}`;
    const { next_offset: first, ...record } = await this.ask("GET", path);
    const name = "result" in record ? "result" : "content";
    for (let offset = first; offset; ) {
      const piece = await this.ask("GET", `${path}?offset=${offset}`);
      record[name] += piece[name];
      offset = piece.next_offset;
    }
    return record;
  }

  /** The bytes of a record's file, read in pieces. */
  async attachment(conversationId, recordId, index, size) {
    const path = `/v1/conversations/${conversationId}/records/${encodeURIComponent(recordId)}/attachments/${index}`;
    const parts = [];
    for (let offset = 0; offset < size; ) {
      const part = await patiently(async () => {
        const headers = { Accept: "application/octet-stream" };
        const response = await this.open("GET", `${path}?offset=${offset}`, { headers });
        return whole(() => response.arrayBuffer());
      }, isPassingRead);
      if (part.byteLength === 0) throw new Unreachable();
      parts.push(part);
      offset += part.byteLength;
    }
    return parts;
  }

  tools() {
    return this.ask("GET", "/v1/tools");
  }

  credits() {
    return this.ask("GET", "/v1/credits");
  }

  spending(days) {
    return this.ask("GET", `/v1/credits/spending?days=${days}`);
  }

  ledger() {
    return this.ask("GET", "/v1/credits/ledger?limit=20");
  }

  githubConnection() {
    return this.ask("GET", "/v1/connections/github");
  }

  connectGithub(token) {
    return this.ask("PUT", "/v1/connections/github", { body: { token } });
  }

  disconnectGithub() {
    return this.ask("DELETE", "/v1/connections/github");
  }

  keys() {
    return this.ask("GET", "/v1/keys");
  }

  /** A new API key; only this answer has its secret. */
  makeKey(body) {
    return this.ask("POST", "/v1/keys", { body });
  }

  changeKey(keyId, body) {
    return this.ask("PATCH", `/v1/keys/${keyId}`, { body });
  }

  rotateKey(keyId) {
    return this.ask("POST", `/v1/keys/${keyId}/rotate`, { body: {} });
  }

  revokeKey(keyId) {
    return this.ask("DELETE", `/v1/keys/${keyId}`);
  }

  corpus(name, signal) {
    return this.ask("GET", `/v1/admin/corpora/${name}`, { signal });
  }

  /** Where a file of a corpus is put. */
  async corpusUpload(name, file, signal) {
    const path = `/v1/admin/corpora/${name}/uploads`;
    const { uploads } = await this.ask("POST", path, { body: { files: [file] }, signal });
    return this.reached(uploads[0]);
  }

  /** An upload with the address at which this page reaches it. */
  reached(upload) {
    const { pathname, search } = new URL(upload.url);
    return this.#uploads === undefined ? upload : { ...upload, url: `${this.#uploads}${pathname}${search}` };
  }

  startCorpusJob(name, body, signal) {
    return this.ask("POST", `/v1/admin/corpora/${name}/jobs`, { body, signal });
  }

  corpusJob(name, jobId, signal) {
    return this.ask("GET", `/v1/admin/corpora/${name}/jobs/${jobId}`, { signal });
  }

  deleteDocument(name, documentId) {
    return this.ask("DELETE", `/v1/admin/corpora/${name}/documents/${documentId}`);
  }

  eraseMe() {
    return this.ask("DELETE", "/v1/me");
  }
}

/** A response's body; the connection may be lost in the middle of it. */
async function whole(read, signal) {
  try {
    return await read();
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new Unreachable();
  }
}

const isPassing = (problem) => problem instanceof Unreachable || problem.status === 503;

/** What is only read comes when there may be requests again: within a minute. */
const isPassingRead = (problem) => isPassing(problem) || problem.code === "rate_limited";

async function errorOf(response) {
  try {
    return (await response.json()).error ?? {};
  } catch {
    return {}; // a proxy's own page
  }
}
