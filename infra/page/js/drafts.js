/**
 * Messages that are being written, one a conversation ("" is a new one) or a question that is being edited.
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

export const draftOf = (place) =>
  place in texts || files.has(place) ? { text: texts[place] ?? "", files: files.get(place) ?? [] } : EMPTY;

export function keepDraft(place, draft) {
  const { [place]: _before, ...others } = texts;
  texts = draft.text
    ? Object.fromEntries([...Object.entries(others), [place, draft.text]].slice(-MOST))
    : others;
  if (draft.files.length > 0) files.set(place, draft.files);
  else files.delete(place);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(texts));
  } catch {
    // no room: the text lives as long as the page
  }
}

/** Both, the first one first: neither is lost. */
export const joined = (one, other) => ({
  text: [one.text, other.text].filter(Boolean).join("\n\n"),
  files: [...one.files, ...other.files],
});

/** Nobody finds what somebody else has begun to write. */
export function claimDrafts(user) {
  if (sessionStorage.getItem(OWNER) !== user) dropDrafts();
  sessionStorage.setItem(OWNER, user);
}

export function dropDrafts() {
  texts = {};
  files.clear();
  sessionStorage.removeItem(KEY);
}
