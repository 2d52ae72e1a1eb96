"""JSON Schemas of answers: which ones are taken (docs/structured-output.md); `output_check` compares answers. Pure.

A schema is untrusted: no reference leaves it, and regular expressions run in linear time (the engine of pydantic,
without look-around).
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps
from dualtrack.tool_check import schema_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack.frozen import JsonObject

MAX_BYTES: Final = 32 * 1_024
"""Maximum size of a schema as compact JSON."""
MAX_PATTERNS: Final = 10
MAX_PATTERN: Final = 200
"""Maximum number of distinct regular expressions, and of their characters: to compile one takes up to half a second."""

_ONE: Final = (
    "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions", "dependentSchemas")
REFUSED_KEYWORDS: Final = (
    "patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$dynamicAnchor", "$anchor",
    "$id",
)  # fmt: skip
"""Keywords that cannot be checked with bounded work, or that change what a reference means."""


def refused_schema(schema: JsonObject) -> str:
    """Why a schema is not taken; empty if it is."""
    try:
        text = dumps(schema)
        if len(text.encode()) > MAX_BYTES:
            return f"it has more than {MAX_BYTES:,} bytes"
        plain = json.loads(text)
        plain.pop("$schema", None)
        return schema_problem(plain) or _unsupported(plain)
    except UnicodeEncodeError:
        return "it has half of a surrogate pair"
    except RecursionError:
        return "it is nested too deeply"


def _unsupported(schema: dict[str, Any]) -> str:
    parts = list(subschemas(schema))
    problems = (problem for part in parts if (problem := _unsupported_part(schema, part)))
    return next(problems, "") or _bad_pattern({part["pattern"] for part in parts if "pattern" in part})


def _unsupported_part(schema: dict[str, Any], part: dict[str, Any]) -> str:
    if found := next((keyword for keyword in REFUSED_KEYWORDS if keyword in part), None):
        return f"{found} is not supported"
    if "$schema" in part:
        return "$schema may stand at the top alone"
    if "$ref" in part and target_of(schema, part["$ref"]) is None:
        return "each $ref must name a part of the schema itself, such as #/$defs/item"
    return ""


def _bad_pattern(patterns: set[str]) -> str:
    if len(patterns) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS} different patterns"
    if any(len(pattern) > MAX_PATTERN for pattern in patterns):
        return f"a pattern has more than {MAX_PATTERN} characters"
    if any(matcher(pattern) is None for pattern in sorted(patterns)):
        return (
            "a pattern cannot be matched in linear time (no look-around, no back references, not too large)"
        )
    return ""


def subschemas(schema: JsonObject) -> Iterator[dict[str, Any]]:
    """The schema and every schema within it, but for ``true`` and ``false``."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield part
        waiting += [part[keyword] for keyword in _ONE if keyword in part]
        for keyword in _LISTED:
            waiting += part.get(keyword, ())
        for keyword in _NAMED:
            waiting += part.get(keyword, {}).values()


def target_of(schema: dict[str, Any], reference: str) -> dict[str, Any] | bool | None:
    """The part of the schema that a reference names; None if it names none."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    target: Any = schema
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isascii() and name.isdigit() and int(name) < len(target):
            target = target[int(name)]
        elif isinstance(target, dict) and name in target:
            target = target[name]
        else:
            return None
    return target if isinstance(target, (dict, bool)) else None


@cache
def _pattern_engine() -> Any:
    from pydantic_core import SchemaValidator, core_schema  # noqa: PLC0415 - only for schemas that have a pattern

    return lambda pattern: (
        SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    )


@lru_cache(maxsize=64)
def matcher(pattern: str) -> Callable[[str], bool] | None:
    """Whether a text has a match, in linear time; None for a pattern that this engine does not take."""
    from pydantic_core import SchemaError  # noqa: PLC0415

    try:
        matches: Callable[[str], bool] = _pattern_engine()(pattern)
    except SchemaError:
        return None
    return matches
