/**
 * Shares the session between tabs of this origin, and nowhere else: it is not stored beyond the last tab.
 *
 * A signed-in tab holds a lock (Web Locks) under a shared name. A new tab that sees the lock held asks on a
 * BroadcastChannel, and a signed-in tab answers with its session; without a lock it does not ask. Both only
 * reach pages of the same origin in the same browser profile, like sessionStorage. Renewed tokens are passed
 * on, and signing out in one tab signs out all of them.
 */
const NAME = "dualtrack.session";
const PATIENCE_MS = 2000; // for a tab that holds the lock and is too busy to answer

export class OpenTabs {
  #session;
  #onSignedOut;
  #channel;
  #holds = false;

  /**
   * `session`: its `state` is shared, `takes` accepts that of another tab; `onSignedOut()`: another tab has
   * signed out.
   */
  constructor(session, onSignedOut) {
    this.#session = session;
    this.#onSignedOut = onSignedOut;
    if (!globalThis.BroadcastChannel || !navigator.locks) return; // then each tab signs in by itself
    this.#channel = new BroadcastChannel(NAME);
    this.#channel.addEventListener("message", ({ data }) => this.#heard(data));
  }

  /** Takes over the session of another tab, if one has any. */
  async join() {
    if (!this.#channel || this.#session.token) return;
    const { held } = await navigator.locks.query();
    if (!held.some((lock) => lock.name === NAME)) return;
    const answered = new Promise((resolve) => {
      this.#joined = resolve;
    });
    this.#channel.postMessage({ kind: "who" });
    await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
    this.#joined = null;
  }

  #joined = null;

  /** From now on this tab answers new ones; the lock ends with the tab. */
  signedIn() {
    this.tell();
    if (!this.#channel || this.#holds) return;
    this.#holds = true;
    navigator.locks.request(NAME, { mode: "shared" }, () => new Promise(() => {}));
  }

  /** Sends the session to tabs that wait for one or have an older one of the same user. */
  tell() {
    if (this.#session.token) this.#channel?.postMessage({ kind: "session", session: this.#session.state });
  }

  signedOut() {
    this.#channel?.postMessage({ kind: "signed-out" });
  }

  #heard({ kind, session }) {
    if (kind === "who" && this.#holds) this.tell();
    else if (kind === "signed-out" && this.#session.token) this.#onSignedOut();
    else if (kind === "session" && this.#session.takes(session, this.#joined !== null)) this.#joined?.();
  }
}
