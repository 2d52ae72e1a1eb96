"""The fields of a request on thinking, by model. Pure.

Up to generation 4 a model thinks only if told to, which we never do. From generation 5 on it thinks unless told not
to, and its thinking counts toward ``max_tokens``. Source of the types that a model accepts: "Troubleshooting thinking"
and the migration guides of Haiku, Sonnet and Opus 5.5 (2026-11).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.codec import stored
from dualtrack.settings import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping

EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

_NAME: Final = re.compile(r"(?:^|\.)claude-([a-z]+)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)")
"""``claude-haiku-4-5-20251001``, and ``anthropic.claude-sonnet-5`` as services of AWS have it."""


@stored(whole=True)
@dataclass(frozen=True, slots=True)
class Thinking:
    """A deployment's settings: ``room`` for thinking in tokens, in addition to those of the written answer; ``effort``
    is one of `EFFORTS`, or empty for the service's default."""

    room: int = DEFAULTS.dualtrack_thinking_tokens
    effort: str = ""


@dataclass(frozen=True, slots=True)
class _Family:
    """``thinks``: whether it thinks by default; ``off``: the type that turns this off, empty if there is none."""

    thinks: bool = False
    off: Literal["", "disabled", "between_tools"] = ""
    takes_effort: bool = False


def thinks(model: str) -> bool:
    """Whether a turn of this model thinks, which is its default: turns never turn it off."""
    return _family(model).thinks


def turn_fields(model: str, max_tokens: int, thinking: Thinking) -> dict[str, Any]:
    """The fields of a turn beside its content. Thinking is requested as readable text, which the full track stores."""
    family = _family(model)
    fields: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
    if family.thinks:
        fields["max_tokens"] += thinking.room
        fields["thinking"] = {"type": "adaptive", "display": "summarized"}
    if family.takes_effort and thinking.effort:
        fields["output_config"] = {"effort": thinking.effort}
    return fields


def short_fields(model: str, max_tokens: int, thinking: Thinking) -> dict[str, Any]:
    """The fields of a call that needs no thinking; a model that always thinks gets room for it.

    No effort is set: without thinking, some models refuse a high one.
    """
    family = _family(model)
    if family.thinks and not family.off:
        return {"model": model, "max_tokens": max_tokens + thinking.room}
    off = {"thinking": {"type": family.off}} if family.off else {}
    return {"model": model, "max_tokens": max_tokens, **off}


def without_thinking(request: Mapping[str, Any], max_tokens: int) -> dict[str, Any] | None:
    """A turn's request without thinking; None if its model did not think, or cannot turn thinking off."""
    family = _family(request["model"])
    if not family.off:
        return None
    kept = {name: value for name, value in request.items() if name != "output_config"}
    if form := request.get("output_config", {}).get("format"):
        kept["output_config"] = {"format": form}
    return kept | {"max_tokens": max_tokens, "thinking": {"type": family.off}}


def line_and_version(model: str) -> tuple[str, tuple[int, int]] | None:
    """``("haiku", (4, 5))`` of a Claude model's name; None for another name."""
    match = _NAME.search(model)
    return (match[1], (int(match[2]), int(match[3] or 0))) if match else None


def _family(model: str) -> _Family:
    """The family by the model's name; an unknown model is treated like one of generation 4."""
    named = line_and_version(model)
    if named is None:
        return _Family()
    line, version = named
    if version >= (5, 0):
        return _Family(thinks=True, off=_off(line, version), takes_effort=True)
    return _Family(takes_effort=version >= (4, 6) or (line, version) == ("opus", (4, 5)))


def _off(line: str, version: tuple[int, int]) -> Literal["", "disabled", "between_tools"]:
    if line == "haiku" or (line in ("sonnet", "opus") and version < (5, 5)):
        return "disabled"
    return "between_tools" if line == "sonnet" else ""
