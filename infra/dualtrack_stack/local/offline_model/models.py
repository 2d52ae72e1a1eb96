"""Limits of the models that a request can exceed. Source: the models' pages and SDK 2.12."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .refusal import RefusalError


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_output`` and ``context_window`` in tokens; ``cache_minimum``: shorter prefixes are not cached.

    ``thinking``: the accepted types; ``thinks``: thinks by default.
    """

    max_output: int
    context_window: int
    cache_minimum: int
    thinking: frozenset[str]
    thinks: bool
    effort: bool


_CURRENT = Limits(
    max_output=128_000,
    context_window=1_000_000,
    cache_minimum=512,
    thinking=frozenset({"adaptive", "between_tools", "disabled"}),
    thinks=True,
    effort=True,
)
_NEVER_OFF = replace(_CURRENT, thinking=frozenset({"adaptive", "between_tools"}))
_BY_PREFIX = (
    (
        "claude-haiku-4-5",
        Limits(
            max_output=64_000,
            context_window=200_000,
            cache_minimum=4096,
            thinking=frozenset({"disabled"}),
            thinks=False,
            effort=False,
        ),
    ),
    (
        "claude-sonnet-4",
        Limits(
            max_output=64_000,
            context_window=1_000_000,
            cache_minimum=1024,
            thinking=frozenset({"adaptive", "disabled"}),
            thinks=False,
            effort=True,
        ),
    ),
    ("claude-opus-4", replace(_CURRENT, thinking=frozenset({"adaptive", "disabled"}), thinks=False)),
    ("claude-sonnet-5-5", _NEVER_OFF),
    ("claude-opus-5-5", _NEVER_OFF),
    ("claude-fable", _NEVER_OFF),
    ("claude-mythos", _NEVER_OFF),
)


def limits_of(model: str) -> Limits:
    """The limits of a model by name; RefusalError 404 for any but a Claude model."""
    for prefix, limits in _BY_PREFIX:
        if model.startswith(prefix):
            return limits
    if not re.fullmatch(r"claude-[a-z0-9.-]+", model):
        raise RefusalError(f"model: {model}", status=404)
    return _CURRENT
