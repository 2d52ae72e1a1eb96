"""Whether an answer fits its JSON Schema (docs/structured-output.md). Pure.

Schema and answer are untrusted: the work of a check is bounded. jsonschema is loaded at the first check, and only the
functions that make one have it in their layers.
"""

from __future__ import annotations

import itertools
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dualtrack.bounded_schema import TooMuchWork, bounded, spend, work_of
from dualtrack.frozen import dumps, strict_loads
from dualtrack.output_schema import REFUSED_KEYWORDS, matcher, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.protocols import Validator

    from dualtrack.frozen import JsonObject

MAX_ANSWER: Final = 1_000_000
"""Maximum characters of an answer: more than any model writes."""
_MAX_PROBLEMS: Final = 3
_MAX_PROBLEM: Final = 300
_MAX_FOUND: Final = 50
_MAX_WORK: Final = 500_000
_FENCED: Final = re.compile(r"\A```(?:json)?[^\S\n]*\n(.*)\n[^\S\n]*```\Z", re.DOTALL | re.IGNORECASE)


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
        target = target_of(schema, name)
        yield from validator.descend(instance, {"not": {}} if target is None else target)

    return bounded({"$ref": reference, "pattern": _pattern}, without=REFUSED_KEYWORDS)(schema)


def _pattern(validator: Validator, pattern: str, instance: Any, _: JsonObject) -> Iterator[Any]:
    from jsonschema import ValidationError  # noqa: PLC0415 - heavy

    if not validator.is_type(instance, "string"):
        return
    spend(len(instance))
    matches = matcher(pattern)
    if matches is None or not matches(instance):
        yield ValidationError(f"{instance[:100]!r} does not match {pattern!r}")
