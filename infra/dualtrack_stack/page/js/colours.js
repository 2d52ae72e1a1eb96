/**
 * Syntax colours, by a worker: a grammar can take minutes on hostile text, and a worker can be terminated.
 * DOMPurify keeps only spans with a class of its output.
 */
import "../lib/purify.js";

const { DOMPurify, trustedTypes } = globalThis;

const WORKER = new URL("colour_worker.js", import.meta.url).href;
const POLICY = trustedTypes?.createPolicy("workers", { createScriptURL: () => WORKER });
const SPANS = {
  ALLOWED_TAGS: ["span"],
  ALLOWED_ATTR: ["class"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const PATIENCE = 1000; // milliseconds for a text
const LONGEST = 50_000; // characters
const LONGEST_MARKUP = 500_000;

let worker = null;
let last = Promise.resolve();

/** Colours the text of an element, one at a time; text that is too long or takes too long stays plain. */
export function colour(element, language) {
  last = last.then(async () => {
    const text = element.textContent;
    if (!element.isConnected || text.length > LONGEST) return;
    const markup = await markupOf(text, language);
    if (markup && markup.length <= LONGEST_MARKUP) element.replaceChildren(DOMPurify.sanitize(markup, SPANS));
  });
}

/** Empty if the worker was terminated. The time for loading does not count. */
function markupOf(text, language) {
  worker ??= new Worker(POLICY ? POLICY.createScriptURL("") : WORKER, { type: "module" });
  return new Promise((resolve) => {
    let timer = 0;
    const end = (markup) => {
      clearTimeout(timer);
      resolve(markup);
    };
    const giveUp = () => {
      worker.terminate();
      worker = null;
      end("");
    };
    worker.onmessage = ({ data }) => {
      if (data.begun) timer = setTimeout(giveUp, PATIENCE);
      else end(data.markup);
    };
    worker.onerror = giveUp;
    worker.postMessage({ text, language });
  });
}
