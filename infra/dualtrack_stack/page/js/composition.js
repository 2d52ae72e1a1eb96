/**
 * Keys that belong to an input method: Enter accepts a word, Escape drops it, arrows choose. No field of the page
 * hears them. Chromium and Firefox say `isComposing`; Safari ends the composition before the key, whose code is 229
 * then (WebKit bug 165004).
 */
export function leaveKeysToInputMethods() {
  window.addEventListener(
    "keydown",
    (event) => {
      if (!event.isComposing && event.keyCode !== 229) return;
      event.stopImmediatePropagation();
      if (event.key === "Enter" && !event.isComposing) event.preventDefault(); // a form's own, too
    },
    { capture: true },
  );
}
