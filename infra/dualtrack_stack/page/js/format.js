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

/** The share that was not sent, in whole percent; 0 if nothing was saved. */
export const saved = (sent, full) => (full > 0 ? Math.max(0, Math.round((1 - sent / full) * 100)) : 0);

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
