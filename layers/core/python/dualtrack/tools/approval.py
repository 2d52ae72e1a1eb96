"""Which tool calls need somebody's approval (docs/profiles.md). Pure.

the profile's `ask` ─► its `allow` ─► the tool's `always` or `never` ─► its `writes`, or the profile's `default`
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dualtrack.profiles import Profile
    from dualtrack.tool_values import ToolSpec
    from dualtrack.vocabulary import CallKind


def asks(profile: Profile, spec: ToolSpec) -> CallKind | Literal[""]:
    """What a call of the tool waits for in this profile; empty if it runs at once."""
    return "approval" if needs_approval(profile, spec) else ""


def needs_approval(profile: Profile, spec: ToolSpec) -> bool:
    """Whether somebody has to approve each call. ``never`` does not count on an MCP server's word."""
    policy, own = profile.approval, spec.approval
    if any(fnmatchcase(spec.name, pattern) for pattern in policy.ask):
        return True
    if any(fnmatchcase(spec.name, pattern) for pattern in policy.allow):
        return False
    if own == "always" or (own == "never" and not spec.server):
        return own == "always"
    rule = "writes" if own == "writes" else policy.default
    return rule == "always" or (rule == "writes" and not spec.repeatable)
