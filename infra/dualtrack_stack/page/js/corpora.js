/**
 * The corpora that administrators see: their names, formats of files, and counts of documents. Data.
 */
import { count, plural } from "./format.js";

export const CORPORA = {
  courses: {
    title: "Course materials",
    document: "course",
    formats: /\.(txt|md|markdown|pdf|docx)$/i,
    accept: ".txt,.md,.markdown,.pdf,.docx",
    taken: "text, Markdown, PDF or DOCX",
    untaken: "is neither text, Markdown, PDF nor DOCX",
    columns: ["lessons", "chunks"],
    facts: ({ model }) => [["Embeddings", model || "none: keywords alone"]],
    deleted: (title) => `“${title}” will no longer be searched. Earlier answers that name it stay unchanged.`,
  },
  graph: {
    title: "Graph",
    document: "file",
    formats: /\.(csv|json)$/i,
    accept: ".csv,.json",
    taken: "nodes and relationships as CSV or JSON",
    untaken: "is neither CSV nor JSON",
    columns: ["nodes", "edges"],
    facts: ({ schema }) =>
      schema
        ? [
            ["Labels", sizes(schema.labels)],
            ["Relationships", sizes(schema.types)],
          ]
        : [],
    deleted: (title) =>
      `The graph is rebuilt without “${title}”. It stays unchanged if other files depend on it.`,
  },
};

export const isCorpus = (name) => Object.hasOwn(CORPORA, name);

/** `Chunks` of `chunks`. Pure. */
export const heading = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** `2 courses · 9 lessons · 40 chunks`. Pure. */
export function overview({ document: word, columns }, documents, counts) {
  const parts = columns
    .filter((name) => counts[name] !== undefined)
    .map((name) => plural(counts[name], name.replace(/s$/, "")));
  return [plural(documents, word), ...parts].join(" · ");
}

const sizes = (some) => some.map((entry) => `${entry.name} ${count(entry.count)}`).join(", ") || "none";
