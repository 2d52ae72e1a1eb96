/**
 * Keyboard shortcuts: `?` while no field has the focus, Alt+Shift with a letter anywhere, and Ctrl+K.
 *
 * Browsers and screen readers leave Alt+Shift alone (they use Ctrl, Alt or Insert; Alt+Shift+A, B, I and T are
 * Chromium's). The key's position counts, not its character: on a Mac Option+Shift+N writes another one.
 * Ctrl+K, which many pages have for their search, is by its character where that is Latin.
 */
export const SHORTCUTS = [
  { id: "new", code: "KeyN", keys: ["Alt", "Shift", "N"], does: "New conversation" },
  { id: "search", code: "KeyF", keys: ["Alt", "Shift", "F"], does: "Find a conversation" },
  { id: "search", letter: "k", keys: ["Ctrl", "K"], does: "The same; on a Mac also ⌘ K" },
  { id: "message", code: "KeyM", keys: ["Alt", "Shift", "M"], does: "Go to the message field" },
  { id: "stop", code: "KeyX", keys: ["Alt", "Shift", "X"], does: "Stop the answer" },
  { id: "settings", code: "Comma", keys: ["Alt", "Shift", ","], does: "Settings, with this list" },
  { id: "settings", sign: "?", keys: ["?"], does: "Settings, with this list, while no field has the focus" },
];

const FIELDS = "input:not([type=radio], [type=checkbox], [type=file]), textarea, select, [contenteditable]";

/** The id of a key's shortcut, else empty. Pure. */
export function shortcutOf({ altKey, shiftKey, ctrlKey, metaKey, code, key }, inField) {
  if (ctrlKey !== metaKey && !altKey && !shiftKey) {
    const letter = /^[a-z]$/i.test(key) ? key.toLowerCase() : code.slice(-1).toLowerCase();
    return SHORTCUTS.find((shortcut) => shortcut.letter === letter)?.id ?? "";
  }
  if (ctrlKey || metaKey) return "";
  if (altKey && shiftKey) return SHORTCUTS.find((shortcut) => shortcut.code === code)?.id ?? "";
  return !altKey && !inField ? (SHORTCUTS.find((shortcut) => shortcut.sign === key)?.id ?? "") : "";
}

/** `actions`: functions by id. An open dialog disables shortcuts. */
export function listenForShortcuts(actions) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const id = shortcutOf(event, Boolean(event.target.closest?.(FIELDS)));
    if (!id) return;
    event.preventDefault();
    actions[id]();
  });
}
