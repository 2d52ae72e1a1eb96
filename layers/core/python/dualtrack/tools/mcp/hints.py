"""What an MCP server says of a tool's effect, and how much of it counts. Pure.

A hint that asks for more caution always counts; one that asks for less (`readOnlyHint`, `idempotentHint`) where the
agent trusts the server, and where the tool is listed as it was accepted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def believed(spec: ToolSpec, profile: Profile) -> ToolSpec:
    """A server's tool as the profile offers it. What is idempotent or destructive is a writing tool: both have a
    meaning only where it does not only read."""
    is_trusted = profile.trust is None or spec.server in profile.trust
    if not is_trusted or spec.is_changed or not asks_for_less(spec.hints):
        return spec
    if spec.hints.get(READ_ONLY):
        return replace(spec, effect="reads", repeatable=True)
    return replace(spec, repeatable=True)
