/** The languages with syntax colours, and their labels on code blocks. Pure data. */
const NAMES = {
  bash: "sh zsh",
  c: "h",
  cpp: "cc c++ h++ hpp hh hxx cxx",
  csharp: "cs c#",
  css: "",
  dart: "",
  diff: "patch",
  dockerfile: "docker",
  elixir: "ex exs",
  go: "golang",
  graphql: "gql",
  haskell: "hs",
  http: "https",
  ini: "toml",
  java: "jsp",
  javascript: "js jsx mjs cjs",
  json: "jsonc json5",
  kotlin: "kt kts",
  latex: "tex",
  lua: "",
  makefile: "mk make",
  markdown: "md",
  nginx: "nginxconf",
  perl: "pl pm",
  php: "",
  powershell: "pwsh ps ps1",
  properties: "",
  protobuf: "proto",
  python: "py python3 ipython pycon",
  r: "",
  ruby: "rb gemspec",
  rust: "rs",
  scala: "",
  scss: "",
  shell: "console shellsession",
  sql: "postgresql mysql sqlite",
  swift: "",
  typescript: "ts tsx mts cts",
  xml: "html xhtml rss atom xsd xsl plist svg vue",
  yaml: "yml",
};

const KNOWN = new Map(
  Object.entries(NAMES).flatMap(([name, others]) =>
    [name, ...others.split(" ")].filter(Boolean).map((other) => [other, name]),
  ),
);

export const LANGUAGES = Object.keys(NAMES);

/** The grammar of a label such as `py`; undefined if there is none. */
export const grammarOf = (label) => KNOWN.get(label.toLowerCase());
