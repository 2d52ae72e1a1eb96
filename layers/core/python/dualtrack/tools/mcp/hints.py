"""What an MCP server says of a tool's effect, and how much of it counts. Pure.

A hint that asks for more caution always counts; one that asks for less (`readOnlyHint`, `idempotentHint`) where the
agent trusts the server, and where the tool is listed as it was accepted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.tools.approval import mark_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from dualtrack.profiles import Profile
    from dualtrack.tool_values import ToolSpec
    from dualtrack.vocabulary import Effect

READ_ONLY: Final = "readOnlyHint"
DESTRUCTIVE: Final = "destructiveHint"
IDEMPOTENT: Final = "idempotentHint"
HINTS: Final = (READ_ONLY, DESTRUCTIVE, IDEMPOTENT)


def cautious_effect(hints: Mapping[str, bool]) -> Effect:
    """The effect of a tool by the hints that always count."""
    return "destroys" if hints.get(DESTRUCTIVE) else "changes"


def asks_for_less(hints: Mapping[str, bool]) -> bool:
    """Whether they say that a tool only reads, or may run twice."""
    return bool(hints.get(READ_ONLY) or hints.get(IDEMPOTENT))


def marks_of(tools: Iterable[ToolSpec]) -> tuple[str, ...]:
    """The marks of the tools that ask for less, in order: what is accepted of a server."""
    return tuple(sorted(mark_of(spec) for spec in tools if asks_for_less(spec.hints)))


def compared(tools: Iterable[ToolSpec], accepted: Collection[str]) -> tuple[ToolSpec, ...]:
    """A server's tools as it lists them now, beside the marks that were accepted. What asks for no less than caution
    needs nobody's word."""
    return tuple(
        replace(spec, is_changed=asks_for_less(spec.hints) and mark_of(spec) not in accepted)
        for spec in tools
    )


def believed(spec: ToolSpec, profile: Profile) -> ToolSpec:
    """A server's tool as the profile offers it."""
    is_trusted = profile.trust is None or spec.server in profile.trust
    return as_said(spec) if is_trusted and not spec.is_changed else spec


def as_said(spec: ToolSpec) -> ToolSpec:
    """A tool as its server says that it is. What is idempotent or destructive is a writing tool: both have a meaning
    only where it does not only read."""
    if not asks_for_less(spec.hints):
        return spec
    if spec.hints.get(READ_ONLY):
        return replace(spec, effect="reads", repeatable=True)
    return replace(spec, repeatable=True)
