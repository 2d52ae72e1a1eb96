"""What a tool call waits for, and which need somebody's approval (docs/profiles.md). Pure.

the profile's `ask` ─► its `allow` ─► the tool's `always` or `never` ─► its `writes`, or the profile's `default`

What needs approval runs without it where the user has allowed the very tool in the conversation, unless the tool or the
profile's `default` says `always`.
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dualtrack.frozen import dumps
from dualtrack.models.turn import Gate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.profiles import Profile
    from dualtrack.tool_values import ToolSpec
    from dualtrack.vocabulary import ApprovalRule

    AllowedTools = Mapping[str, str]
    """By name, the tools that the user has allowed in a conversation, each with its `mark_of`."""


def gate(profile: Profile, allowed: Callable[[], AllowedTools], spec: ToolSpec) -> Gate:
    """What a call of the tool waits for; ``allowed`` is asked only where it matters."""
    if spec.outside:
        return Gate(spec.outside)
    if not needs_approval(profile, spec):
        return Gate()
    if _rule(profile, spec) == "always":
        return Gate("approval")
    mark = mark_of(spec)
    return Gate("" if allowed().get(spec.name) == mark else "approval", mark)


def mark_of(spec: ToolSpec) -> str:
    """A hash of what was approved: of a tool that has changed, a server's own as well, the next call asks again."""
    shown = [spec.name, spec.description, spec.input_schema, spec.server, spec.remote_name]
    if spec.hints:
        shown.append(spec.hints)
    return hashlib.sha256(dumps(shown).encode()).hexdigest()[:16]


def needs_approval(profile: Profile, spec: ToolSpec) -> bool:
    """Whether somebody has to approve each call. ``never`` does not count on an MCP server's word."""
    policy = profile.approval
    if any(fnmatchcase(spec.name, pattern) for pattern in policy.ask):
        return True
    if any(fnmatchcase(spec.name, pattern) for pattern in policy.allow):
        return False
    rule = _rule(profile, spec)
    return rule == "always" or (rule == "writes" and spec.does != "reads")


def _rule(profile: Profile, spec: ToolSpec) -> ApprovalRule:
    """The tool's own, as far as it counts, else the profile's."""
    is_waved_through = spec.approval == "never" and spec.server
    return profile.approval.default if not spec.approval or is_waved_through else spec.approval
