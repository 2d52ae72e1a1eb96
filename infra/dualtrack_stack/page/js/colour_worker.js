/**
 * Colours texts in turn: `{text, language}` in; `{begun}` once the grammar is loaded, then `{markup}` out.
 */
import hljs from "../lib/highlight/core.js";

const WITHIN = { markdown: ["xml"], shell: ["bash"], xml: ["css", "javascript"] };

self.onmessage = async ({ data: { text, language } }) => {
  for (const name of [language, ...(WITHIN[language] ?? [])]) {
    if (!hljs.getLanguage(name))
      hljs.registerLanguage(name, (await import(`../lib/highlight/${name}.js`)).default);
  }
  postMessage({ begun: true });
  postMessage({ markup: hljs.highlight(text, { language, ignoreIllegals: true }).value });
};
