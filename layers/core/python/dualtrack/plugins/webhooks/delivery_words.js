/** What became of a message, in words. */
import { moment, plural } from "../../js/format.js";

/** `delivered: 204 in 12 ms`, `pending: 500, 3 tries, again at 08:31`. */
export function deliveryWords({ status, answer, error, attempts, next_at: next, milliseconds }) {
  if (attempts === 0) return `${status}: not tried yet`;
  const parts = [
    error || `${answer} in ${milliseconds} ms`,
    attempts > 1 && plural(attempts, "try").replace("trys", "tries"),
    next && `again at ${moment(next)}`,
  ];
  return `${status}: ${parts.filter(Boolean).join(", ")}`;
}
