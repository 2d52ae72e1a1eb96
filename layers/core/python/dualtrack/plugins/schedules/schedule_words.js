/** Schedules in words, and what is entered for one as the API's request. Pure. */
import { plural } from "../../js/format.js";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SHORT = DAYS.map((day) => day.slice(0, 3).toUpperCase());
const REFUSALS = {
  insufficient_credits: "there were too few credits",
  key_cap_reached: "its API key had reached a cap",
  not_found: "its conversation was deleted",
  conversation_busy: "its conversation was running",
  conversation_paused: "its conversation waited for a decision",
  unauthorized: "the API key that made it is gone",
  forbidden: "its API key is for other agents",
};
const ENDS = { paused: "waits for a decision", answered: "answered", running: "running", done: "done" };

/** How a schedule is made: the choice's label, and which fields it has. */
export const KINDS = {
  daily: { label: "Every day", fields: ["time", "timezone"] },
  weekdays: { label: "Monday to Friday", fields: ["time", "timezone"] },
  rate: { label: "Every so often", fields: ["amount", "unit"] },
  once: { label: "Once", fields: ["date", "timezone"] },
  cron: { label: "By a cron expression", fields: ["cron", "timezone"] },
};

/** The due times of what was entered, as the API takes them. */
export function timesOf({ kind, time, amount, unit, date, cron, timezone }) {
  if (kind === "rate") return { rate: `${amount} ${Number(amount) === 1 ? unit : `${unit}s`}` };
  if (kind === "once") return { at: date, timezone };
  if (kind === "cron") return { cron, timezone };
  const [hour, minute] = time.split(":").map(Number);
  return { cron: `${minute} ${hour} * * ${kind === "daily" ? "*" : "1-5"}`, timezone };
}

/** When a schedule is due: `every 2 hours`, `Monday to Friday at 08:00, Europe/Berlin`. */
export function ruleOf({ cron, rate, at, timezone }) {
  if (rate) return `every ${rate.replace(/^1 /, "")}`;
  if (at) return `once, ${at.replace("T", " ")}${hasOffset(at) ? "" : `, ${timezone}`}`;
  return `${cronWords(cron) ?? `cron ${cron}`}, ${timezone}`;
}

const hasOffset = (at) => /(Z|[+-]\d\d:?\d\d)$/i.test(at);

/** A cron expression of the common forms in words; null for another one. */
function cronWords(cron) {
  const [minute, hour, day, month, weekday] = cron.trim().split(/\s+/);
  if (month !== "*") return null;
  if (hour === "*" && day === "*" && weekday === "*") return withinTheHour(minute);
  if (!/^\d+$/.test(minute) || !/^\d+$/.test(hour)) return null;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (day === "*") {
    const days = daysOf(weekday);
    return days && `${days} at ${time}`;
  }
  if (weekday !== "*") return null;
  if (day === "L") return `on the last day of each month at ${time}`;
  return /^\d+$/.test(day) ? `on day ${Number(day)} of each month at ${time}` : null;
}

function withinTheHour(minute) {
  const step = /^\*\/(\d+)$/.exec(minute)?.[1];
  if (minute === "*" || step === "1") return "every minute";
  if (step && 60 % step === 0) return `every ${step} minutes`;
  return /^\d+$/.test(minute) ? `every hour at minute ${Number(minute)}` : null;
}

function daysOf(weekday) {
  if (weekday === "*") return "every day";
  const [from, to, ...more] = weekday.split("-").map(dayOf);
  if (weekday.includes("-")) return from && to && more.length === 0 ? `${from} to ${to}` : null;
  const days = weekday.split(",").map(dayOf);
  if (days.some((day) => !day)) return null;
  return `on ${days.length > 1 ? `${days.slice(0, -1).join(", ")} and ${days.at(-1)}` : days[0]}`;
}

const dayOf = (text) => DAYS[/^[0-7]$/.test(text) ? Number(text) % 7 : SHORT.indexOf(text.toUpperCase())];

/** Why a run was refused, by its error code. */
export const refusal = (code) => REFUSALS[code] ?? code;

/** What became of a run: its end and cost, `missed`, or why it was refused. */
export function outcomeOf(run) {
  if (run.status === "missed") return "missed: the service could not run it before the next one was due";
  if (run.status === "refused") return `refused: ${refusal(run.error)}`;
  if (run.chat_status === undefined) return "started";
  if (run.chat_status === null) return "its chat was deleted";
  const end = ENDS[run.chat_status] ?? run.chat_status;
  return run.credits ? `${end}, ${plural(run.credits, "credit")}` : end;
}

/** Active, or why it is not due. */
export function stateOf({ status, error }) {
  if (status === "active" && error)
    return error.startsWith("conversation_")
      ? `It waits: ${refusal(error)}. It is tried every minute until the next due time.`
      : `The latest run was refused: ${refusal(error)}.`;
  if (status === "paused")
    return error
      ? `Paused after three refusals: ${refusal(error)}. Resume it once that is settled.`
      : "Paused.";
  if (status === "ended") return error ? `Ended: ${refusal(error)}.` : "Ended: it is not due again.";
  return "";
}
