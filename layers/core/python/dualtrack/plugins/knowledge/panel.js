/** Documents that agents search: the collections, a new one, one's documents. */
import { show } from "../../js/dialogs.js";
import { h, wayBack } from "../../js/dom.js";
import { plural } from "../../js/format.js";
import { action, focusIn, sending, sure } from "../../js/panel.js";
import { showDocuments } from "./documents.js";

const PATH = "/v1/collections";

/** Shows them. */
export async function open(api) {
  const section = h(
    "section",
    { class: "collections", tabindex: "-1" },
    h("p", { class: "muted" }, "Loading…"),
  );
  const view = { api, section, listed: [], cursor: null };
  const closed = show("Documents", section);
  try {
    await list(view);
  } catch (problem) {
    section.replaceChildren(h("p", { class: "problem", role: "alert" }, problem.message));
  }
  return closed;
}

/** Reads the first page of collections, or the one after those that are there, and draws them all. */
async function list(view, more = false) {
  const after = more ? `?cursor=${encodeURIComponent(view.cursor)}` : "";
  const page = await view.api.ask("GET", `${PATH}${after}`);
  view.listed = more ? [...view.listed, ...page.collections] : page.collections;
  view.cursor = page.cursor ?? null;
  draw(view);
}

async function again(view) {
  await list(view);
  focusIn(view.section);
}

function draw(view) {
  view.section.replaceChildren(
    h(
      "p",
      { class: "fine muted" },
      "Agents that read documents search your collections, and those that everybody here may read.",
    ),
    h("div", { role: "alert", class: "panel-problem" }),
    view.listed.length > 0
      ? h(
          "ul",
          { class: "boxed-list" },
          view.listed.map((collection) => line(view, collection)),
        )
      : h("p", {}, "There are no documents yet: make a collection, then add files to it."),
    view.cursor ? action("Show more", "collections", () => list(view, true)) : "",
    maker(view),
  );
}

const tell = (view, problem) =>
  view.section.querySelector(".panel-problem").replaceChildren(h("p", { class: "problem" }, problem.message));

function line(view, collection) {
  const { collection_id: id, name, description, shared } = collection;
  const { documents = 0 } = collection.counts;
  const mayChange = !shared || view.api.isAdmin;
  const place = h("div", {});
  const remove = async () => {
    try {
      await view.api.ask("DELETE", `${PATH}/${id}`);
      await again(view);
    } catch (problem) {
      tell(view, problem);
    }
  };
  const actions = () =>
    place.replaceChildren(
      h(
        "p",
        { class: "notice-actions" },
        action(mayChange ? "Documents" : "Show documents", name, () =>
          showDocuments(view.api, view.section, collection, () => again(view)),
        ),
        mayChange &&
          action("Delete", name, () => {
            const lost = `Delete it with ${plural(documents, "document")}? No answer finds them any more.`;
            place.replaceChildren(sure(lost, "Delete", wayBack(place, actions), remove));
            focusIn(place);
          }),
      ),
    );
  actions();
  return h(
    "li",
    {},
    h("strong", {}, name),
    h(
      "p",
      { class: "fine muted" },
      [plural(documents, "document"), shared && "for everybody", description].filter(Boolean).join(" · "),
    ),
    place,
  );
}

function maker(view) {
  const make = async (form) => {
    const entered = new FormData(form);
    const body = {
      name: entered.get("name").trim(),
      description: entered.get("description").trim(),
      shared: entered.has("shared"),
    };
    const made = await view.api.ask("POST", PATH, { body });
    showDocuments(view.api, view.section, made, () => again(view));
  };
  return h(
    "details",
    { class: "agent-details", open: view.listed.length === 0 },
    h("summary", {}, "Make a collection"),
    sending(
      make,
      h("label", {}, "Name", h("input", { name: "name", required: true, maxlength: 100 })),
      h("label", {}, "What is in it (may be empty)", h("input", { name: "description", maxlength: 500 })),
      view.api.isAdmin &&
        h(
          "label",
          { class: "check" },
          h("input", { type: "checkbox", name: "shared" }),
          "For everybody who signs in here",
        ),
      h("button", { class: "button primary" }, "Make the collection"),
    ),
  );
}
