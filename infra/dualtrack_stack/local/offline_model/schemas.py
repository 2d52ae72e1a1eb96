"""JSON Schemas of structured output: which ones the API refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .refusal import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSUPPORTED = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "array": ("maxItems", "uniqueItems"),
}
"""Keywords that structured outputs do not support (the SDK moves them into descriptions)."""


def _walk(node: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(node, dict):
        return
    yield path, node
    for key in ("properties", "$defs", "definitions"):
        for name, child in (node.get(key) or {}).items():
            yield from _walk(child, f"{path}.{key}.{name}")
    for key in ("anyOf", "allOf", "oneOf"):
        for index, child in enumerate(node.get(key) or ()):
            yield from _walk(child, f"{path}.{key}.{index}")
    yield from _walk(node.get("items"), f"{path}.items")


def check_output(schema: Mapping[str, Any]) -> None:
    """Refuse, as ``output_config.format``, what grammar-constrained output does not support: open objects and some
    keywords."""
    where = "output_config.format.schema"
    if not schema:
        raise RefusalError(f"{where}: must be a JSON schema")
    for path, node in _walk(schema, where):
        kind = node.get("type")
        if kind == "object" and node.get("additionalProperties") is not False:
            raise RefusalError(
                f"{path}: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        if not isinstance(kind, str):
            continue
        bad = [keyword for keyword in _UNSUPPORTED.get(kind, ()) if keyword in node]
        if bad:
            raise RefusalError(f"{path}: For '{kind}' type, properties {', '.join(bad)} are not supported")
        if kind == "array" and node.get("minItems", 0) not in (0, 1):
            raise RefusalError(
                f"{path}: For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            )
