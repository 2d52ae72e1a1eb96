"""GET /v1/tools: the tools, their prices, and the profiles that offer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from dualtrack.credits.plans import price_calls
from dualtrack.indirect_calls import INDIRECT
from dualtrack.tools.approval import mark_of
from dualtrack.tools.mcp.hints import as_said
from dualtrack.tools.registry import in_house_specs, offered_tools
from dualtrack.vocabulary import Effect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack import answers
    from dualtrack.profiles import Profile
    from dualtrack.tool_values import ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue

_EFFECTS: Final = get_args(Effect)
"""From the least on."""


def tools_json(
    profiles: Iterable[Profile], catalogue: Catalogue, model: str, *, is_admin: bool = False
) -> answers.Tools:
    """``{"tools": [...], "profiles": [...]}``; ``model``: the deployment's, for profiles that name no model.

    For administrators also ``left_out``, the tools of MCP servers that cannot be offered, and ``changed``, those that
    are not accepted.
    """
    offers = {profile: offered_tools(profile, in_house_specs(profile), catalogue) for profile in profiles}
    distinct: dict[str, ToolSpec] = {}
    for name, spec in (entry for offer in offers.values() for entry in offer.items()):
        distinct[name] = max(distinct.get(name, spec), spec, key=_caution)
    listed: answers.Tools = {
        "tools": [_tool(spec) for spec in distinct.values()],
        "profiles": [
            {
                "name": profile.name,
                "description": profile.description,
                "model": profile.model or model,
                "max_turns": profile.max_turns,
                "tools": list(offer),
                "history": {"policy": profile.history.policy},
                "suggestions": list(profile.suggestions),
            }
            for profile, offer in offers.items()
        ],
    }
    if is_admin:
        listed["left_out"] = [
            {"server": entry.server, "name": entry.name, "reason": entry.reason}
            for entry in catalogue.left_out
        ]
        listed["changed"] = changed_json(catalogue.tools)
    return listed


def changed_json(tools: Iterable[ToolSpec]) -> list[answers.ChangedTool]:
    """Those of the tools that are not accepted, as their servers say that they are."""
    return [
        {
            "server": spec.server,
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.input_schema,
            "effect": spec.does,
            "repeatable": spec.repeatable,
            "mark": mark_of(spec),
        }
        for spec in map(as_said, tools)
        if spec.is_changed
    ]


def _caution(spec: ToolSpec) -> tuple[int, bool]:
    return _EFFECTS.index(spec.does), not spec.repeatable


def _tool(spec: ToolSpec) -> answers.Tool:
    told: answers.Tool = {
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "price": 0 if spec.outside or spec.name in INDIRECT else price_calls([spec.price_class])[0],
        "kind": spec.kind,
        "effect": spec.does,
        "repeatable": spec.repeatable,
    }
    return {**told, "searched": True} if spec.is_searched else told
