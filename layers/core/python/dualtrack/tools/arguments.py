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
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, thaw
from dualtrack.tool_check import schema_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

    from dualtrack.tool_values import ToolSpec

MAX_PROBLEMS: Final = 3
MAX_PROBLEM: Final = 300
_MAX_FOUND: Final = 50
_MAX_WORK: Final = 100_000
_MAX_NESTED: Final = 80
"""Maximum nesting of keywords. If Python's stack overflows, the registry's Rust code panics past every `except`."""
_UNCHECKED: Final = frozenset({"pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"})
"""Keywords with regular expressions, and those that evaluate them (or references) without being counted."""


@dataclass(slots=True)
class _Work:
    """The work left for a check, in visits of keywords; a reference may search the whole schema."""

    reference: int
    left: int = _MAX_WORK
    depth: int = 0

    def spend(self, keyword: str, value: Any, instance: Any) -> None:
        """Raise `_TooMuchWork` when nothing is left."""
        if keyword in ("$ref", "$dynamicRef"):
            self.left -= self.reference
        elif keyword == "uniqueItems" and isinstance(instance, list):
            self.left -= len(instance) ** 2 // 10 + 1  # items are compared pairwise
        else:
            self.left -= len(value) if isinstance(value, (list, dict)) and value else 1
        if self.left < 0 or self.depth > _MAX_NESTED:
            raise _TooMuchWork


class _TooMuchWork(Exception):
    """The schema needs more work than any honest one."""


_work: ContextVar[_Work] = ContextVar("work")


def invalid_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, for the model to correct: at most three problems; empty if valid."""
    problems = _problems(dumps(spec.input_schema), thaw(arguments), not spec.server)
    return f"bad arguments: {'; '.join(problems)}" if problems else ""


def _problems(schema: str, arguments: Any, is_own: bool) -> tuple[str, ...]:
    """The problems; none if the schema cannot be applied. ``is_own``: its dates are checked."""
    _work.set(_Work(reference=len(schema) // 20 + 10))
    try:
        validator = _validator(schema, is_own)
        errors = validator.iter_errors(arguments) if validator else iter(())
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
    """JSON Schema 2020-12 without regular expressions, every keyword counted."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import create  # noqa: PLC0415

    base = Draft202012Validator
    rules = {name: _counted(name, rule) for name, rule in base.VALIDATORS.items() if name not in _UNCHECKED}
    return create(meta_schema=base.META_SCHEMA, validators=rules, type_checker=base.TYPE_CHECKER)


def _counted(name: str, rule: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def check(validator: Validator, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if name == "additionalProperties" and "patternProperties" in schema:
            return  # depends on the patterns, which are ignored
        work = _work.get()
        work.spend(name, value, instance)
        work.depth += 1
        try:
            yield from rule(validator, value, instance, schema) or ()
        finally:  # evaluation of an invalid branch stops early
            work.depth -= 1

    return check
