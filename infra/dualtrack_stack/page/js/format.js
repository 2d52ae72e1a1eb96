/** Figures and times as people read them. Pure. */

const whole = new Intl.NumberFormat("en");

export const count = (number) => whole.format(number);

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** `0.4 s`, `12 s`, `2 min 5 s`. */
export function seconds(value) {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** Seconds between two ISO times. */
export const between = (from, to) => Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);

/** `1.2 MB`, `340 KB`. */
export function bytes(size) {
  return size >= 1048576 ? `${(size / 1048576).toFixed(1)} MB` : `${Math.max(1, Math.round(size / 1024))} KB`;
}

/** The server's estimate: four characters a token (code points, as in Python). */
export const tokens = (text) => Math.ceil([...text].length / 4);

/** `$0.0123`, with the significant digits. */
export function dollars(amount) {
  if (amount === 0) return "$0";
  const digits = amount >= 0.01 ? 4 : Math.min(9, 1 - Math.floor(Math.log10(amount)));
  return `$${amount.toFixed(digits)}`;
}

/** `+11 %`: how much more (−: less) ours costs. */
export function difference(ours, full) {
  const percent = full > 0 ? Math.round((ours / full - 1) * 100) : 0;
  return `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${Math.abs(percent)} %`;
}

/** `$0.0041, with the full history $0.0037: +11 %`. */
export const compared = (ours, full) =>
  full > 0
    ? `${dollars(ours)}, with the full history ${dollars(full)}: ${difference(ours, full)}`
    : dollars(ours);

/**
 * What a conversation cost up to a chat, from its `memory`. `fictional`: the offline model answered.
 */
export function soFar({ memory, fictional }) {
  const notes = [
    "estimated",
    memory.summaries_due && "its summaries not counted yet",
    memory.beyond_window && "the full history longer than the model's window",
    fictional && "fictional",
  ];
  const costs = compared(memory.conversation_dollars, memory.conversation_full_history_dollars);
  return `${costs} so far, ${notes.filter(Boolean).join(", ")}`;
}

/** `in 3 h 12 min`. */
export function until(iso, now = Date.now()) {
  const minutes = Math.max(0, Math.ceil((Date.parse(iso) - now) / 60000));
  const hours = Math.floor(minutes / 60);
  if (hours === 0) return `in ${minutes} min`;
  return minutes % 60 ? `in ${hours} h ${minutes % 60} min` : `in ${hours} h`;
}

/** `14:03` today, else `21 Nov, 14:03`. */
export function moment(iso, now = new Date()) {
  const at = new Date(iso);
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === now.toDateString()) return time;
  return `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${time}`;
}

/** The start of a text on one line. */
export function start(text, limit) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}
