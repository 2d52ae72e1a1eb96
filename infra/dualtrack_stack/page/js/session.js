/**
 * The signed-in user. The local stack issues tokens of its own pool; elsewhere Cognito's hosted page signs
 * in, by authorization code with PKCE (RFC 7636).
 *
 * A session is in this tab's sessionStorage, so it survives a reload; open tabs pass it to new ones
 * (open_tabs.js), so it ends with the last tab.
 */
const KEY = "dualtrack.session";
const PENDING = "dualtrack.sign-in";
const REFUSED = "dualtrack.refused"; // the token that the API refused last

export class SignInFailed extends Error {}

export function sessionFor(settings) {
  return settings.kind === "local" ? new LocalSession() : new CognitoSession(settings);
}

function stored(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

const store = (key, value) => sessionStorage.setItem(key, JSON.stringify(value));

function claims(token) {
  const part = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
  return JSON.parse(
    new TextDecoder().decode(Uint8Array.from(atob(part), (character) => character.charCodeAt(0))),
  );
}

/**
 * Whether the user is an administrator. The API decides; the page only hides what it would refuse.
 */
export const isAdmin = ({ token }) => Boolean(token && claims(token)["cognito:groups"]?.includes("admin"));

/** Common to all kinds of sessions. */
class Session {
  onRenewed = () => {};

  get token() {
    return stored(KEY)?.token ?? null;
  }

  /** The stored session, for other tabs. */
  get state() {
    return stored(KEY);
  }

  /** Takes another tab's session if this one `waits` for one, or has an older one of the same user. Returns
   * whether it did. */
  takes(state, waits) {
    if (!state?.token || state.token === stored(REFUSED)) return false;
    const { token } = this;
    if (token ? !isNewer(state.token, token) : !waits) return false;
    store(KEY, state);
    return true;
  }

  /** Forgets a session; one that the API refuses is not taken from another tab either. */
  drop() {
    if (this.token) store(REFUSED, this.token);
    sessionStorage.removeItem(KEY);
  }
}

function isNewer(token, than) {
  const [first, second] = [claims(token), claims(than)];
  return first.sub === second.sub && first.iat > second.iat;
}

class LocalSession extends Session {
  kind = "local";

  get name() {
    return stored(KEY)?.name ?? "";
  }

  /** The stack's own user, as on its terminal, unless another name is entered. */
  async ownName() {
    return (await (await fetch("/dev/status")).json()).user;
  }

  /** The command that gives the user more credits. */
  get grants() {
    return `uv run dualtrack credits grant ${this.name} 500`;
  }

  /** There is no redirect to complete here. */
  async resume() {}

  async signIn(name, admin = false) {
    const response = await fetch(`/dev/token?user=${encodeURIComponent(name)}${admin ? "&admin=1" : ""}`);
    const body = await response.json();
    if (!response.ok) throw new SignInFailed(body.error.message);
    store(KEY, { token: body.token, name });
  }

  /** A fresh token for the same user; false if there is none. */
  async renew() {
    if (!this.name) return false;
    try {
      await this.signIn(this.name);
      this.onRenewed();
      return true;
    } catch {
      return false;
    }
  }

  signOut() {
    this.drop();
    location.assign("/");
  }
}

class CognitoSession extends Session {
  kind = "cognito";
  #domain;
  #client;
  #renewal = null;

  constructor({ domain, client_id: client }) {
    super();
    this.#domain = domain;
    this.#client = client;
  }

  get name() {
    const { token } = this;
    if (!token) return "";
    const claimed = claims(token);
    return claimed.email ?? claimed["cognito:username"] ?? "";
  }

  async signIn() {
    const verifier = random();
    const state = random();
    store(PENDING, { verifier, state, hash: location.hash });
    const parameters = new URLSearchParams({
      response_type: "code",
      client_id: this.#client,
      redirect_uri: `${location.origin}/`,
      scope: "openid email profile",
      state,
      code_challenge_method: "S256",
      code_challenge: await challenge(verifier),
    });
    location.assign(`${this.#domain}/oauth2/authorize?${parameters}`);
    await new Promise(() => {}); // the page is being left
  }

  /** Completes a sign-in if the address has its code. Throws SignInFailed. */
  async resume() {
    const parameters = new URLSearchParams(location.search);
    if (!parameters.has("code") && !parameters.has("error")) return;
    const pending = stored(PENDING);
    sessionStorage.removeItem(PENDING);
    history.replaceState(null, "", `/${pending?.hash ?? ""}`);
    if (!pending || parameters.get("state") !== pending.state)
      throw new SignInFailed("Please sign in again.");
    if (parameters.has("error"))
      throw new SignInFailed(parameters.get("error_description") ?? "Signing in failed.");
    await this.#exchange({
      grant_type: "authorization_code",
      code: parameters.get("code"),
      redirect_uri: `${location.origin}/`,
      code_verifier: pending.verifier,
    });
  }

  /** A fresh token by the refresh token; concurrent calls share one exchange. */
  renew() {
    const refresh = stored(KEY)?.refresh;
    if (!refresh) return Promise.resolve(false);
    this.#renewal ??= this.#exchange({ grant_type: "refresh_token", refresh_token: refresh })
      .then(
        () => {
          this.onRenewed();
          return true;
        },
        () => false,
      )
      .finally(() => {
        this.#renewal = null;
      });
    return this.#renewal;
  }

  async #exchange(fields) {
    const response = await fetch(`${this.#domain}/oauth2/token`, {
      method: "POST",
      body: new URLSearchParams({ ...fields, client_id: this.#client }),
    });
    if (!response.ok) throw new SignInFailed("Please sign in again.");
    const body = await response.json();
    store(KEY, { token: body.id_token, refresh: body.refresh_token ?? stored(KEY)?.refresh });
  }

  signOut() {
    this.drop();
    const parameters = new URLSearchParams({ client_id: this.#client, logout_uri: `${location.origin}/` });
    location.assign(`${this.#domain}/logout?${parameters}`);
  }
}

function base64url(data) {
  return btoa(String.fromCharCode(...data))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function challenge(verifier) {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}
