/** The theme: the system's, light or dark; kept in this browser. */
const KEY = "dualtrack.theme";
const DARK = "(prefers-color-scheme: dark)";

export const THEMES = { system: "System", light: "Light", dark: "Dark" };

export function chosenTheme() {
  try {
    const stored = localStorage.getItem(KEY);
    return stored in THEMES ? stored : "system";
  } catch {
    return "system"; // no storage
  }
}

export function chooseTheme(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // without storage it lasts as long as the page
  }
  applyTheme(theme);
}

/** The rules for dark screens apply always, never, or by the system's setting, so no colour is written twice.
 * */
export function applyTheme(theme = chosenTheme()) {
  document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
  document.documentElement.dataset.theme = theme;
  for (const rule of darkRules())
    rule.media.mediaText = { system: DARK, light: "not all", dark: "all" }[theme];
}

let rules = null;

/** They are in the page's own style sheets, which are loaded before its scripts run. */
function darkRules() {
  rules ??= [...document.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText === DARK);
  return rules;
}
