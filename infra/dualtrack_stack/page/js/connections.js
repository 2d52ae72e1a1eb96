/** Connections: the user's own GitHub token, stored encrypted and never shown again. */
import { h } from "./dom.js";

/** Whether a tool's result says that the user's token was not accepted. Pure. */
export const isRefusedToken = ({ tool, state, preview }) =>
  tool.startsWith("github_") && state !== "ok" && /did not accept the token/.test(preview ?? "");

/** `github`: the connection as the API returns it. */
export function connections(api, github) {
  const section = h("section", { class: "github" });
  draw(section, api, github.connected);
  return section;
}

function draw(section, api, connected, said = "") {
  section.replaceChildren(
    h("h3", {}, "GitHub"),
    connected ? stored(section, api) : form(section, api),
    said && h("p", { class: "problem", role: "alert" }, said),
  );
}

function stored(section, api) {
  const off = async () => {
    try {
      await api.disconnectGithub();
      draw(section, api, false);
    } catch (problem) {
      draw(section, api, true, problem.message);
    }
  };
  return h(
    "p",
    {},
    "Your GitHub token is stored, encrypted. GitHub checks it when a tool first uses it. ",
    h("button", { type: "button", class: "link-button", onclick: off }, "Disconnect"),
  );
}

function form(section, api) {
  const field = h("input", { type: "password", autocomplete: "off", required: true, maxlength: 1000 });
  const on = async (event) => {
    event.preventDefault();
    try {
      await api.connectGithub(field.value);
      draw(section, api, true);
    } catch (problem) {
      draw(section, api, false, problem.message);
    }
  };
  return h(
    "form",
    { class: "inline-form", onsubmit: on },
    h("label", {}, "Personal access token, read-only is enough", field),
    h("button", { class: "button" }, "Connect"),
  );
}
