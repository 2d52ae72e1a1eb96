/**
 * Drafts, one for each conversation ("" is a new one) and each question that is being edited.
 *
 * Text lives in this tab's sessionStorage, as the session does: it survives a reload and ends with the tab.
 * Files stay in memory.
 */
const KEY = "dualtrack.drafts";
const OWNER = "dualtrack.drafts-of";
const MOST = 50;
const EMPTY = { text: "", files: [] };

let texts = stored();
const files = new Map();

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

export const draftOf = (key) =>
  key in texts || files.has(key) ? { text: texts[key] ?? "", files: files.get(key) ?? [] } : EMPTY;

export function keepDraft(key, draft) {
  const { [key]: _before, ...others } = texts;
  texts = draft.text
    ? Object.fromEntries([...Object.entries(others), [key, draft.text]].slice(-MOST))
    : others;
  if (draft.files.length > 0) files.set(key, draft.files);
  else files.delete(key);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(texts));
  } catch {
    // storage is full: drafts last as long as the page
  }
}

/** Both drafts in one, the earlier first. */
export const joined = (earlier, later) => ({
  text: [earlier.text, later.text].filter(Boolean).join("\n\n"),
  files: [...earlier.files, ...later.files],
});

/** Drops drafts of another user. */
export function claimDrafts(user) {
  if (sessionStorage.getItem(OWNER) !== user) dropDrafts();
  sessionStorage.setItem(OWNER, user);
}

export function dropDrafts() {
  texts = {};
  files.clear();
  sessionStorage.removeItem(KEY);
}
