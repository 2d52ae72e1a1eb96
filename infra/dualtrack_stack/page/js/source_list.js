/**
 * The sources below an answer: a list that unfolds, each source once, with its link and its records.
 */
import { h, recordButton } from "./dom.js";
import { plural } from "./format.js";

/** Sources in order of first use, each `{title, url, records}` once. Pure. */
export function distinct(sources) {
  const byKey = new Map();
  for (const { title, url, record_id: record } of sources) {
    const key = JSON.stringify([title, url ?? ""]);
    const source = byKey.get(key) ?? { title, url, records: [] };
    byKey.set(
      key,
      record && !source.records.includes(record)
        ? { ...source, records: [...source.records, record] }
        : source,
    );
  }
  return [...byKey.values()];
}

/**
 * A source's link if it is a web address, else null: sources are untrusted. Pure.
 */
export function webAddress(url) {
  const parsed = url && URL.canParse(url) ? new URL(url) : null;
  return parsed && /^https?:$/.test(parsed.protocol) && !parsed.username && !parsed.password
    ? parsed.href
    : null;
}

export function sourceList(sources) {
  const listed = distinct(sources);
  return h(
    "details",
    { class: "sources" },
    h("summary", {}, plural(listed.length, "source")),
    h(
      "ol",
      {},
      listed.map((source) =>
        h(
          "li",
          {},
          sourceName(source),
          source.records.map((record) => recordButton(record)),
        ),
      ),
    ),
  );
}

function sourceName({ title, url }) {
  const href = webAddress(url);
  if (!href) return h("span", {}, title);
  return h("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, title);
}
