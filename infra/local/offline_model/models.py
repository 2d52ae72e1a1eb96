"""What the named models allow, where a request can break it. Source: the models' pages and SDK 2.12."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .refusal import RefusalError


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_output`` and ``context_window`` in tokens; ``cache_minimum``: shorter prefixes are not cached."""

    max_output: int
    context_window: int
    cache_minimum: int
    manual_thinking: bool
    adaptive_thinking: bool
    system_messages: bool


_CURRENT = Limits(
    max_output=128_000,
    context_window=1_000_000,
    cache_minimum=512,
    manual_thinking=False,
    adaptive_thinking=True,
    system_messages=True,
)
_BY_PREFIX = (
    (
        "claude-haiku-4-5",
        Limits(
            max_output=64_000,
            context_window=200_000,
            cache_minimum=4096,
            manual_thinking=True,
            adaptive_thinking=False,
            system_messages=False,
        ),
    ),
    (
        "claude-sonnet-4",
        Limits(
            max_output=64_000,
            context_window=1_000_000,
            cache_minimum=1024,
            manual_thinking=True,
            adaptive_thinking=True,
            system_messages=False,
        ),
    ),
)


def limits_of(model: str) -> Limits:
    """The limits of a model by name; RefusalError 404 for what is not a Claude model."""
    for prefix, limits in _BY_PREFIX:
        if model.startswith(prefix):
            return limits
    if not re.fullmatch(r"claude-[a-z0-9.-]+", model):
        raise RefusalError(f"model: {model}", status=404)
    return _CURRENT
