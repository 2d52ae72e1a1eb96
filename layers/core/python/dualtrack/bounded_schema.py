"""JSON Schema 2020-12 whose checks do a bounded amount of work, for schemas and values that are both untrusted.

The work is counted in visits of keywords. jsonschema is loaded at the first check, not at import.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from jsonschema.protocols import Validator

    Rule = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[Any]]

_MAX_NESTED: Final = 80
"""Maximum nesting of keywords. If Python's stack overflows, the registry's Rust code panics past every `except`."""


class TooMuchWork(Exception):
    """The check needs more work than any honest one."""


@dataclass(slots=True)
class _Work:
    """The work left for a check; ``reference``: what following one costs, because it may search the whole schema."""

    left: int
    reference: int
    depth: int = 0


_work: ContextVar[_Work] = ContextVar("work")


@contextmanager
def work_of(visits: int, reference: int = 1) -> Iterator[None]:
    """A check that may take so many visits of keywords; a reference counts as ``reference`` of them."""
    token = _work.set(_Work(visits, reference))
    try:
        yield
    finally:
        _work.reset(token)


def spend(visits: int) -> None:
    """Count work; raises `TooMuchWork` when nothing is left."""
    work = _work.get()
    work.left -= visits
    if work.left < 0 or work.depth > _MAX_NESTED:
        raise TooMuchWork


def bounded(own: Mapping[str, Rule], without: Collection[str]) -> Callable[..., Validator]:
    """A class of validators with some rules of one's own, ``without`` some keywords, every keyword counted."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import create  # noqa: PLC0415

    base = Draft202012Validator
    rules: dict[str, Any] = {**base.VALIDATORS, **own}
    counted = {name: _counted(name, rule) for name, rule in rules.items() if name not in without}
    return create(meta_schema=base.META_SCHEMA, validators=counted, type_checker=base.TYPE_CHECKER)


def _counted(name: str, rule: Rule) -> Rule:
    def check(validator: Validator, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if name == "additionalProperties" and "patternProperties" in schema:
            return  # depends on the patterns, which are ignored
        spend(_visits(name, value, instance))
        work = _work.get()
        work.depth += 1
        try:
            yield from rule(validator, value, instance, schema) or ()
        finally:  # evaluation of an invalid branch stops early
            work.depth -= 1

    return check


def _visits(keyword: str, value: Any, instance: Any) -> int:
    if keyword in ("$ref", "$dynamicRef"):
        return _work.get().reference
    if keyword == "uniqueItems" and isinstance(instance, list):
        return len(instance) ** 2 // 10 + 1  # items are compared pairwise
    return len(value) if isinstance(value, (list, dict)) and value else 1
