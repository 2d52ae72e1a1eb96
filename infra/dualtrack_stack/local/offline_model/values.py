"""A small value that is valid for a JSON Schema: what the offline model answers where a schema is asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from .prose import overlap, words

_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "nobody@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_TEXT = "text"
_DEEP = 6
"""Levels below which only what is required is written, so that a schema that names itself ends."""


_LISTED = re.compile(r"<(?:library id|excerpt number)=\"([^\"\n]{1,300})\"")
_ASKED = re.compile(r"<question>([^<]{1,2000})</question>")


def smallest(schema: Mapping[str, Any]) -> Any:
    """The value. Patterns, `not`, `if` and `allOf` of more than one part are beyond it."""
    return _value(schema, schema, 0)


def chosen(schema: Mapping[str, Any], prompt: str) -> Any:
    """The answer to a question of the documentation search: of what is listed, the ids or numbers of what shares most
    words with the user's question; else the question as the product that it names, and no topic."""
    asked = _ASKED.search(prompt)
    question = asked[1].strip() if asked else ""
    wanted, parts = frozenset(words(question)), _LISTED.split(prompt)[1:]
    listed = sorted(zip(parts[::2], parts[1::2], strict=True), key=lambda item: -overlap(wanted, item[1]))
    texts = iter((listed[0][0] if listed else question,))

    def told(value: Any) -> Any:
        if value == _TEXT:
            return next(texts, "")
        return [int(key) for key, _ in listed if key.isdecimal()] if value == [0] else value

    value = smallest(schema)
    return {name: told(item) for name, item in value.items()} if isinstance(value, dict) else value


def _value(part: Any, root: Mapping[str, Any], level: int) -> Any:
    if not isinstance(part, Mapping):
        return None
    if reference := part.get("$ref"):
        return _value(_target(root, reference), root, level + 1)
    if "const" in part:
        return part["const"]
    for keyword in ("enum", "examples"):
        if part.get(keyword):
            return part[keyword][0]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if part.get(keyword):
            # of several, the last: with a schema that names itself the end of the recursion
            return _value({**part, **part[keyword][-1], keyword: None}, root, level)
    kind = part.get("type", "object" if "properties" in part else "string")
    return _of_type(kind[0] if isinstance(kind, list) else kind, part, root, level)


def _target(root: Mapping[str, Any], reference: str) -> Any:
    target: Any = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        target = target[int(name)] if isinstance(target, list) else target[name]
    return target


def _of_type(kind: str, part: Mapping[str, Any], root: Mapping[str, Any], level: int) -> Any:
    if kind == "object":
        properties, required = part.get("properties", {}), part.get("required", ())
        named = required if level > _DEEP else dict.fromkeys((*properties, *required))
        return {name: _value(properties.get(name, True), root, level + 1) for name in named}
    if kind == "array":
        listed = part.get("prefixItems", ())
        wanted = max(
            int(part.get("minItems", 0)), len(listed), 1 if level <= _DEEP and "items" in part else 0
        )
        wanted = min(wanted, int(part.get("maxItems", wanted)))
        parts = [*listed, *[part.get("items", {})] * wanted][:wanted]
        return [_value(item, root, level + 1) for item in parts]
    if kind in ("integer", "number"):
        return _number(part, whole=kind == "integer")
    if kind == "string":
        text = _FORMATS.get(part.get("format", ""), _TEXT)
        return text.ljust(int(part.get("minLength", 0)), ".")[: int(part.get("maxLength", 10_000))]
    return False if kind == "boolean" else None


def _number(part: Mapping[str, Any], *, whole: bool) -> float:
    step = part.get("multipleOf", 1)
    least = part.get("minimum", part.get("exclusiveMinimum", -math.inf) + step)
    most = part.get("maximum", part.get("exclusiveMaximum", math.inf) - step)
    number = min(max(0, least), most)
    if "multipleOf" in part:
        number = math.ceil(number / step) * step
    return math.ceil(number) if whole else number
