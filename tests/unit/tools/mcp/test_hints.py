"""How much of an MCP server's hints counts: more caution always, less where the agent trusts the server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from dualtrack.frozen import freeze
from dualtrack.profiles import profile_named
from dualtrack.tools.approval import mark_of, needs_approval
from dualtrack.tools.mcp.catalogue import Catalogue
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.specs import ListedTool, specs_of
from dualtrack.tools.registry import offered_tools

if TYPE_CHECKING:
    from dualtrack.tool_values import ToolSpec

READ, DESTROY, REPEAT = "readOnlyHint", "destructiveHint", "idempotentHint"


def offered(hints: dict[str, bool], trust: tuple[str, ...] | None, *, is_changed: bool = False) -> ToolSpec:
    profile = replace(profile_named("assistant"), mcp=("docs",), trust=trust)
    schema = freeze({"type": "object"})
    (spec,) = specs_of(McpServer("docs", "http://x/"), [ListedTool("go", "", schema, freeze(hints))]).tools
    return offered_tools(profile, (), Catalogue("", (replace(spec, is_changed=is_changed),)))["docs_go"]


@pytest.mark.parametrize("trust", [None, ("docs", "other")])
@pytest.mark.parametrize(
    ("hints", "does", "repeatable"),
    [
        ({}, "changes", False),
        ({READ: True}, "reads", True),
        ({READ: False}, "changes", False),
        ({DESTROY: True}, "destroys", False),
        ({DESTROY: False}, "changes", False),
        ({REPEAT: True}, "changes", True),
        ({REPEAT: True, DESTROY: True}, "destroys", True),
        ({READ: True, DESTROY: True, REPEAT: False}, "reads", True),
        ({READ: False, DESTROY: True, REPEAT: False}, "destroys", False),
    ],
)
def test_all_hints_of_a_trusted_server_count(
    hints: dict[str, bool], does: str, repeatable: bool, trust: tuple[str, ...] | None
) -> None:
    spec = offered(hints, trust)
    assert (spec.does, spec.repeatable) == (does, repeatable)


@pytest.mark.parametrize(
    ("trust", "is_changed"), [((), False), (("other",), False), (None, True), (("docs",), True)]
)
@pytest.mark.parametrize(
    ("hints", "does"),
    [
        ({READ: True}, "changes"),
        ({REPEAT: True}, "changes"),
        ({READ: True, DESTROY: True}, "destroys"),
        ({DESTROY: True, REPEAT: True}, "destroys"),
    ],
)
def test_without_trust_and_for_a_changed_tool_only_what_asks_for_more_counts(
    hints: dict[str, bool], does: str, trust: tuple[str, ...] | None, is_changed: bool
) -> None:
    spec = offered(hints, trust, is_changed=is_changed)
    assert (spec.does, spec.repeatable) == (does, False)


def test_approval_asks_by_effect_not_by_repetition() -> None:
    profile = profile_named("assistant")
    assert not needs_approval(profile, offered({READ: True}, None))
    assert needs_approval(profile, offered({REPEAT: True}, None))
    assert needs_approval(profile, offered({READ: True}, ()))


def test_what_a_user_has_allowed_is_asked_for_again_when_its_hints_change() -> None:
    marks = {mark_of(offered(hints, None)) for hints in ({}, {DESTROY: True}, {DESTROY: False})}
    assert len(marks) == 3
