"""The body of a turn's call to the Messages API. It is built only here, because a call after the turn must begin with
exactly the same request: any difference would miss the prompt cache (DESIGN 2.15). Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualtrack.frozen import thaw
from dualtrack.models.thinking import short_fields, turn_fields
from dualtrack.profiles import UTILITY
from dualtrack.tool_values import sent_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.frozen import JsonObject
    from dualtrack.models.stops import LastCallReason
    from dualtrack.models.thinking import Thinking
    from dualtrack.profiles import Profile
    from dualtrack.tool_values import ToolSpec


def turn_request(
    agent: Agent,
    offered: Mapping[str, ToolSpec],
    limit: LastCallReason,
    messages: Sequence[JsonObject],
    max_tokens: int,
    output: JsonObject | None = None,
) -> dict[str, Any]:
    """The body. The last call of a chat keeps its tools, so that it keeps the cached prefix. ``output``: the schema
    that forces its answer; the service then reads the messages anew, but not tools and system."""
    system = {"type": "text", "text": agent.profile.system, "cache_control": {"type": "ephemeral"}}
    request: dict[str, Any] = {
        **call_fields(agent.profile, agent.model, max_tokens, agent.thinking),
        "system": [system],
        "messages": list(messages),
    }
    if offered:
        request["tools"] = [_tool(spec) for spec in sent_tools(offered)]
        if limit:
            request["tool_choice"] = {"type": "none"}
    if output is not None:
        form = {"type": "json_schema", "schema": output}
        request["output_config"] = {**request.get("output_config", {}), "format": form}
    return request


def call_fields(profile: Profile, model: str, max_tokens: int, thinking: Thinking) -> dict[str, Any]:
    """The fields beside its content. A small task needs no thinking, which would be dearer than its answer."""
    fields = short_fields if profile.name == UTILITY.name else turn_fields
    return fields(model, max_tokens, thinking)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": thaw(spec.input_schema)}
