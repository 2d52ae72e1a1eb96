"""Validates a tool's arguments against its schema: the same check for all tools, before a call is paid and run.

The schema may be untrusted (an MCP server's), and so may the arguments (a document may have told the model what to
write). So a schema cannot fetch anything (the registry is empty), and cannot stall or crash the check: the work is
counted, and keywords with regular expressions are ignored, because Python's `re` may take exponential time. The tool's
server must refuse what is not checked here, as it must anyway.

jsonschema is loaded at the first tool call, not at import.
"""

from __future__ import annotations

import itertools
import json
from datetime import date, datetime
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.bounded_schema import bounded, work_of
from dualtrack.frozen import dumps, thaw
from dualtrack.tool_check import schema_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

    from dualtrack.tool_values import ToolSpec

MAX_PROBLEMS: Final = 3
MAX_PROBLEM: Final = 300
_MAX_FOUND: Final = 50
_MAX_WORK: Final = 100_000
_UNCHECKED: Final = frozenset({"pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"})
"""Keywords with regular expressions, and those that evaluate them (or references) without being counted."""


def invalid_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, for the model to correct: at most three problems; empty if valid."""
    problems = _problems(dumps(spec.input_schema), thaw(arguments), not spec.is_foreign)
    return f"bad arguments: {'; '.join(problems)}" if problems else ""


def _problems(schema: str, arguments: Any, is_own: bool) -> tuple[str, ...]:
    """The problems; none if the schema cannot be applied. ``is_own``: its dates are checked."""
    try:
        validator = _validator(schema, is_own)
        errors = validator.iter_errors(arguments) if validator else iter(())
        with work_of(_MAX_WORK, reference=len(schema) // 20 + 10):
            problems = sorted(itertools.islice(errors, _MAX_FOUND), key=lambda error: error.json_path)
        return tuple(f"{error.json_path}: {error.message}"[:MAX_PROBLEM] for error in problems[:MAX_PROBLEMS])
    except Exception:  # noqa: BLE001 - any error of an untrusted schema: its server decides
        return ()


@lru_cache(maxsize=256)
def _validator(text: str, is_own: bool) -> Validator | None:
    """None for an invalid schema, or one that names another dialect inside: jsonschema would switch to that dialect."""
    from referencing import Registry  # noqa: PLC0415

    schema = json.loads(text)
    schema.pop("$schema", None)
    if schema_problem(schema) or '"$schema":' in dumps(schema):
        return None
    return _bounded()(schema, registry=Registry(), format_checker=_dates() if is_own else None)


@cache
def _dates() -> FormatChecker:
    """The formats of `dualtrack.tool_types`: a server decides itself what its own ones mean."""
    from jsonschema import FormatChecker  # noqa: PLC0415

    checker = FormatChecker(formats=())
    for name, kind in (("date", date), ("date-time", datetime)):
        checker.checks(name, raises=ValueError)(partial(_is_moment, kind))
    return checker


def _is_moment(kind: type[date], value: Any) -> bool:
    return not isinstance(value, str) or bool(kind.fromisoformat(value))


@cache
def _bounded() -> Callable[..., Validator]:
    return bounded({}, without=_UNCHECKED)
