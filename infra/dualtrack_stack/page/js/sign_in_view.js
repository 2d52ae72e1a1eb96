/** The sign-in card. */
import { byId } from "./dom.js";

export function showSignIn(session, problem = "") {
  const local = session.kind === "local";
  byId("shell").hidden = true;
  byId("sign-in").hidden = false;
  byId("sign-in-name-field").hidden = !local;
  byId("sign-in-admin-field").hidden = !local;
  byId("sign-in-note").textContent = local
    ? "The local stack asks for no password. Each name is a user of its own, with its own credits."
    : "";
  byId("sign-in-problem").textContent = problem;
  byId("sign-in-problem").hidden = problem === "";
  byId("sign-in-button").focus();
}
