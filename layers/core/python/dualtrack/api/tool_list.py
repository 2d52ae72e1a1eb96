"""GET /v1/tools: the tools, their prices, and the profiles that offer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.credits.plans import price_calls
from dualtrack.tools.registry import in_house_specs, offered_tools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.profiles import Profile
    from dualtrack.tool import ToolSpec
    from dualtrack.tools.mcp.catalogue import Catalogue


def tools_json(profiles: Iterable[Profile], catalogue: Catalogue, model: str) -> dict[str, Any]:
    """``{"tools": [...], "profiles": [...]}``; ``model``: the deployment's, for profiles that name no model."""
    offered = {profile: offered_tools(profile, in_house_specs(profile), catalogue) for profile in profiles}
    distinct = {name: spec for tools in offered.values() for name, spec in tools.items()}
    return {
        "tools": [_tool(spec) for spec in distinct.values()],
        "profiles": [
            {
                "name": profile.name,
                "description": profile.description,
                "model": profile.model or model,
                "max_turns": profile.max_turns,
                "tools": list(tools),
                "history": {"policy": profile.history.policy},
                "suggestions": list(profile.suggestions),
            }
            for profile, tools in offered.items()
        ],
    }


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "price": price_calls([spec.price_class], documentation_already_paid=False)[0],
        "kind": spec.kind,
    }
