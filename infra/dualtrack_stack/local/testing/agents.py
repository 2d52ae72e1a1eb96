"""The agent that a test names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dualtrack.profiles import all_profiles, profile_from
from dualtrack.tools.registry import IN_HOUSE
from dualtrack_stack.profiles import ProfileFile
from pydantic import ValidationError

if TYPE_CHECKING:
    from dualtrack.profiles import Profile
    from dualtrack.tool_values import ToolSpec


def agent_from(profile: str | Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> Profile:
    """The profile of this name or content, with the test's own of these tools besides. Raises ValueError."""
    known = all_profiles()
    if isinstance(profile, Mapping):
        agent = _checked(profile, tools)
    elif profile in known:
        agent = known[profile]
    else:
        raise ValueError(f"There is no profile {profile!r}; there are {', '.join(known)}.")
    own = [name for name in tools if name not in IN_HOUSE and name not in agent.tools]
    return replace(agent, tools=(*agent.tools, *own))


def _checked(content: Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> Profile:
    """The profile of a file's content, checked as a file is."""
    try:
        ProfileFile.model_validate(content, context={"tools": tools})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"The profile is wrong: {field}: {first['msg']}.") from None
    return profile_from(dict(content))
