"""JSON Schemas of answers: which ones are taken, and whether an answer fits (docs/structured-output.md). Pure.

Schema and answer are untrusted: no reference leaves the schema, regular expressions run in linear time (the engine of
pydantic, without look-around), and the work of a check is bounded. jsonschema is loaded at the first check, not at
import.
"""

from __future__ import annotations

import itertools
import json
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from dualtrack.bounded_schema import TooMuchWork, bounded, spend, work_of
from dualtrack.frozen import dumps, strict_loads
from dualtrack.tool_check import schema_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jsonschema.protocols import Validator

    from dualtrack.frozen import JsonObject

MAX_BYTES: Final = 32 * 1_024
"""Maximum size of a schema as compact JSON."""
MAX_PATTERNS: Final = 10
MAX_PATTERN: Final = 200
"""Maximum number of distinct regular expressions, and of their characters: to compile one takes up to half a second."""
MAX_ANSWER: Final = 1_000_000
"""Maximum characters of an answer: more than any model writes."""
_MAX_PROBLEMS: Final = 3
_MAX_PROBLEM: Final = 300
_MAX_FOUND: Final = 50
_MAX_WORK: Final = 500_000

_ONE: Final = (
    "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions", "dependentSchemas")
_REFUSED: Final = (
    "patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$dynamicAnchor", "$anchor",
    "$id",
)  # fmt: skip
"""Keywords that cannot be checked with bounded work, or that change what a reference means."""
_FENCED: Final = re.compile(r"\A```(?:json)?[^\S\n]*\n(.*)\n[^\S\n]*```\Z", re.DOTALL | re.IGNORECASE)


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
    if found := next((keyword for keyword in _REFUSED if keyword in part), None):
        return f"{found} is not supported"
    if "$schema" in part:
        return "$schema may stand at the top alone"
    if "$ref" in part and _target(schema, part["$ref"]) is None:
        return "each $ref must name a part of the schema itself, such as #/$defs/item"
    return ""


def _bad_pattern(patterns: set[str]) -> str:
    if len(patterns) > MAX_PATTERNS:
        return f"it has more than {MAX_PATTERNS} different patterns"
    if any(len(pattern) > MAX_PATTERN for pattern in patterns):
        return f"a pattern has more than {MAX_PATTERN} characters"
    if any(_matcher(pattern) is None for pattern in sorted(patterns)):
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


def _target(schema: dict[str, Any], reference: str) -> dict[str, Any] | bool | None:
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


def written_json(text: str) -> str:
    """The JSON of an answer: all of it, or what stands in the one code fence around it."""
    plain = text.strip()
    fenced = _FENCED.match(plain)
    return fenced[1].strip() if fenced else plain


def misfit(schema: JsonObject, text: str) -> str:
    """Why the JSON text does not fit the schema, for the model to correct: at most three problems; empty if it does."""
    try:
        value = strict_loads(text, MAX_ANSWER)
    except ValueError as error:
        return f"the answer is no JSON: {error}"
    validator = _validator(dumps(schema))
    try:
        with work_of(_MAX_WORK):
            problems = list(itertools.islice(validator.iter_errors(value), _MAX_FOUND))
    except (TooMuchWork, RecursionError):
        return "checking the answer takes too much work: it is too large or too deeply nested"
    first = sorted(problems, key=lambda problem: problem.json_path)[:_MAX_PROBLEMS]
    return "; ".join(f"{problem.json_path}: {problem.message}"[:_MAX_PROBLEM] for problem in first)


@lru_cache(maxsize=32)
def _validator(text: str) -> Validator:
    schema = json.loads(text)
    schema.pop("$schema", None)

    def reference(validator: Any, name: str, instance: Any, _: JsonObject) -> Iterator[Any]:
        target = _target(schema, name)
        yield from validator.descend(instance, {"not": {}} if target is None else target)

    return bounded({"$ref": reference, "pattern": _pattern}, without=_REFUSED)(schema)


def _pattern(validator: Validator, pattern: str, instance: Any, _: JsonObject) -> Iterator[Any]:
    from jsonschema import ValidationError  # noqa: PLC0415 - heavy

    if not validator.is_type(instance, "string"):
        return
    spend(len(instance))
    matcher = _matcher(pattern)
    if matcher is None or not matcher(instance):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern!r}")


@cache
def _pattern_engine() -> Any:
    from pydantic_core import SchemaValidator, core_schema  # noqa: PLC0415 - only for schemas that have a pattern

    return lambda pattern: (
        SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    )


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> Callable[[str], bool] | None:
    """Whether a text has a match, in linear time; None for a pattern that this engine does not take."""
    from pydantic_core import SchemaError  # noqa: PLC0415

    try:
        matches: Callable[[str], bool] = _pattern_engine()(pattern)
    except SchemaError:
        return None
    return matches
