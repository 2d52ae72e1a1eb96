/** The rows of a chat's receipt. Pure. */

const NAMES = {
  summary: "Summaries",
  fold: "Digest of older questions",
  title: "Title of the conversation",
  chat: "The chat itself",
};

const TIMED = ["model", "wait", "tool", "summary", "fold", "title"];

/** A line's displayed name. */
export function nameOf(line) {
  if (line.kind === "model") return line.turn ? `Model call ${line.turn}` : "Model calls";
  if (line.kind === "wait") return `Model busy, ${line.tries} ${line.tries === 1 ? "try" : "tries"}`;
  if (line.kind === "tool") return line.tool;
  return NAMES[line.kind] ?? line.item ?? line.kind;
}

/**
 * `{seconds, rows}`: model calls, waits, tools and summaries in order. A row has `name, kind, from, took, first,
 * share, dollars, credits, failed, estimated`; `from`, `took` and `first` (to the first piece of an answer)
 * are fractions of the total time, null if not recorded, and `share` is the fraction of the rows' dollars.
 */
export function timeline({ created_at: created, lines }) {
  const done = lines.filter((line) => TIMED.includes(line.kind));
  const begins = (line) => (line.at ? Math.max(0, (Date.parse(line.at) - Date.parse(created)) / 1000) : null);
  const whole = Math.max(0.001, ...done.map((line) => (begins(line) ?? 0) + (line.seconds ?? 0)));
  const spent = done.reduce((sum, line) => sum + line.dollars, 0);
  const rows = done.map((line) => ({
    name: nameOf(line),
    kind: ["fold", "title"].includes(line.kind) ? "summary" : line.kind,
    seconds: line.seconds ?? null,
    from:
      line.seconds === null || line.seconds === undefined || begins(line) === null
        ? null
        : begins(line) / whole,
    took: (line.seconds ?? 0) / whole,
    first: line.first_seconds ? Math.min(line.first_seconds, line.seconds ?? 0) / whole : 0,
    share: spent > 0 ? line.dollars / spent : 0,
    dollars: line.dollars,
    credits: line.credits ?? 0,
    failed: line.is_error === true,
    estimated: line.estimated,
  }));
  return { seconds: whole, rows };
}
