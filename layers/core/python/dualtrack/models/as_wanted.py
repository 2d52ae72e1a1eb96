"""The decision on a reply, held against what its client wants (CONTRACT 10). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.models.turn import TurnDecision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.models.wanted import Wanted
    from dualtrack.tool_values import ToolSpec

_CALL = "(The program that the user writes with needs a call here: call {tools} now.)"
_NOT_NOW = "the program that the user writes with takes no call of this tool now."


def refused_by_client(wanted: Wanted, spec: ToolSpec) -> str:
    """Why a call of this tool will not run; empty if the client takes it."""
    return _NOT_NOW if spec.kind == "client_tool" and not wanted.allows(spec.name) else ""


def with_call(decision: TurnDecision, wanted: Wanted, offered: Mapping[str, ToolSpec]) -> TurnDecision:
    """The decision on an answer that should have been a call: the model is told once more."""
    tools = [
        spec.name for spec in offered.values() if spec.kind == "client_tool" and wanted.allows(spec.name)
    ]
    is_call_missing = wanted.must_call and decision.next == "answered" and decision.stop == "complete"
    if not is_call_missing or not tools:
        return decision
    return TurnDecision("turn", decision.text, told=_CALL.format(tools=" or ".join(tools)))


def request_as_wanted(request: Mapping[str, Any], wanted: Wanted) -> dict[str, Any]:
    """The body of a turn's call with the client's limits, none of which moves the cached prefix."""
    limits: dict[str, Any] = {"stop_sequences": list(wanted.stop)} if wanted.stop else {}
    if wanted.max_tokens:
        limits["max_tokens"] = min(request["max_tokens"], wanted.max_tokens)
    return {**request, **limits}
