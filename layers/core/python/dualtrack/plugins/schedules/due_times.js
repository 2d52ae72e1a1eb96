/** When a schedule that is being entered would be due, in the API's words; one request runs at a time. */
import { h } from "../../js/dom.js";
import { timesOf } from "./schedule_words.js";

const AT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone; // for what has none: every two hours

/** Shows it below the fields of a form, from when `details`, which folds the form, is opened. */
export function showDueTimes(api, details) {
  const form = details.querySelector("form");
  const place = h("p", { class: "fine", role: "status" });
  form.querySelector(".field-row").after(place);
  let busy = false;
  let shown = "";
  const look = async () => {
    if (busy) return;
    busy = true;
    for (let wanted = entered(form); wanted !== shown; wanted = entered(form)) {
      shown = wanted;
      place.replaceChildren(wanted && (await words(api, JSON.parse(wanted))));
    }
    busy = false;
  };
  form.addEventListener("input", look);
  details.addEventListener("toggle", look);
}

/** The times as the API takes them, as a text to compare; empty while a field lacks something. */
function entered(form) {
  if (form.querySelector(".field-row :invalid")) return "";
  return JSON.stringify({ timezone: OWN_ZONE, ...timesOf(Object.fromEntries(new FormData(form))) });
}

async function words(api, times) {
  try {
    const { next } = await api.ask("POST", "/v1/schedules/next", { body: times });
    return `Next, in ${times.timezone}: ${next.map(inItsZone).join(" · ")}`;
  } catch (problem) {
    return h("span", { class: "problem" }, problem.message);
  }
}

/** `2026-12-01T08:00:00+01:00` as `1 Dec 2026, 08:00`: the zone's own clock, which the browser need not know. */
const inItsZone = (due) => AT.format(new Date(`${due.slice(0, 19)}Z`));
