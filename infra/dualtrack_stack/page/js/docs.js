/**
 * The API's OpenAPI document as a page: routes by tag, then events, then types. It reads only /openapi.json,
 * and supports only the parts of OpenAPI that this document uses.
 */
import { byId, h } from "./dom.js";

const nameOf = (reference) => reference.slice(reference.lastIndexOf("/") + 1);

/** Text with `code` between backticks. */
function prose(said = "") {
  return said.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

function typeLink(name) {
  return h("a", { href: `#type-${name}` }, name);
}

/** A schema's type in a few words. */
function kindOf(schema = {}) {
  if (schema.$ref) return [typeLink(nameOf(schema.$ref))];
  if (schema.const !== undefined) return [h("code", {}, JSON.stringify(schema.const))];
  if (schema.enum)
    return schema.enum.flatMap((value, index) => [index ? " or " : "", h("code", {}, JSON.stringify(value))]);
  const either = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (either) return either.flatMap((option, index) => [index ? " or " : "", ...kindOf(option)]);
  if (schema.type === "array") return ["list of ", ...kindOf(schema.items)];
  return [schema.format ?? schema.type ?? "anything"];
}

function table(rows) {
  return h(
    "div",
    { class: "docs-table" },
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        rows.map((cells) =>
          h(
            "tr",
            {},
            cells.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
}

function example(title, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return h("details", {}, h("summary", {}, title), h("pre", { tabindex: "0" }, text));
}

/** The type and the examples of a body, whatever its media type. */
function content(body = {}) {
  return Object.entries(body.content ?? {}).flatMap(([media, { schema, example: single, examples = {} }]) => [
    h("div", {}, h("code", {}, media), schema ? [" ", ...kindOf(schema)] : null),
    single === undefined || single === "" ? null : example("Example", single),
    Object.entries(examples).map(([name, { value }]) => example(`Example: ${name}`, value)),
  ]);
}

function operation(path, method, route, components) {
  const parameters = route.parameters.map(({ $ref }) => components.parameters[nameOf($ref)]);
  return h(
    "section",
    { class: "docs-part", id: route.operationId },
    h("h3", {}, h("span", { class: "docs-method" }, method), h("code", {}, path)),
    h("p", {}, h("strong", {}, prose(route.summary)), ". ", prose(route.description)),
    route.security?.length === 0 ? h("p", {}, "Needs no token.") : null,
    parameters.length ? h("h4", {}, "Parameters") : null,
    parameters.length
      ? table(parameters.map((each) => [h("code", {}, each.name), each.in, prose(each.description)]))
      : null,
    route.requestBody
      ? [h("h4", {}, "Body"), h("p", {}, prose(route.requestBody.description)), content(route.requestBody)]
      : null,
    h("h4", {}, "Answers"),
    table(
      Object.entries(route.responses).map(([status, answer]) => [
        status,
        [h("div", {}, prose(answer.description)), content(answer)],
      ]),
    ),
  );
}

function fields(schema) {
  const required = new Set(schema.required ?? []);
  return table(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [
      h("code", {}, required.has(name) ? name : `${name}?`),
      kindOf(property),
      prose(property.description),
    ]),
  );
}

function type(name, schema) {
  const which = schema.oneOf?.filter((option) => option.title) ?? [];
  return h(
    "section",
    { class: "docs-part", id: `type-${name}` },
    h("h3", {}, h("code", {}, name)),
    h("p", {}, prose(schema.description)),
    schema.properties ? fields(schema) : null,
    which.length
      ? table(
          which.map((event) => [
            h("code", {}, event.title),
            kindOf(event.properties.data.contentSchema),
            prose(event.description),
          ]),
        )
      : null,
  );
}

function draw({ info, tags, paths, components }) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => ({ path, method, route })),
  );
  const groups = tags.map((tag) => ({
    tag,
    listed: operations.filter(({ route }) => route.tags.includes(tag.name)),
  }));
  const types = Object.entries(components.schemas);
  byId("contents").replaceChildren(
    h("p", {}, h("a", { href: "./" }, "dualtrack")),
    ...groups.flatMap(({ tag, listed }) => [
      h("h2", {}, tag.name),
      h(
        "ul",
        {},
        listed.map(({ route }) =>
          h("li", {}, h("a", { href: `#${route.operationId}` }, prose(route.summary))),
        ),
      ),
    ]),
    h("h2", {}, "Types"),
    h(
      "ul",
      {},
      types.map(([name]) => h("li", {}, typeLink(name))),
    ),
  );
  byId("document").replaceChildren(
    h("h1", {}, "The API"),
    ...info.description.split("\n\n").map((part) => h("p", {}, prose(part))),
    h(
      "p",
      {},
      "This page is drawn from ",
      h("a", { href: "openapi.json" }, "openapi.json"),
      ", OpenAPI 3.1.",
    ),
    ...groups.flatMap(({ tag, listed }) => [
      h("h2", {}, tag.name),
      h("p", {}, prose(tag.description)),
      ...listed.map(({ path, method, route }) => operation(path, method, route, components)),
    ]),
    h("h2", {}, "Types"),
    ...types.map(([name, schema]) => type(name, schema)),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

try {
  draw(await (await fetch("openapi.json")).json());
} catch {
  byId("document").replaceChildren(
    h("p", { role: "alert" }, "The document could not be read. Reload the page to try again."),
  );
}
