"""The project around a test, and the agent that the test names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dualtrack.credits.plans import add_prices
from dualtrack.profiles import all_profiles, profile_from
from dualtrack.tool_declaration import declared
from dualtrack_stack.local.own import PLACE
from dualtrack_stack.profiles import ProfileFile
from dualtrack_stack.project.read import read_project
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from dualtrack.profiles import Profile
    from dualtrack.tool_declaration import Declaration
    from dualtrack.tool_values import ToolSpec
    from dualtrack_stack.project.model import Project


@cache
def project_at(root: Path) -> Project:
    """The project of a folder, read once in a process, and its prices. Raises `BadProject`."""
    project = read_project(root)
    add_prices(project.prices)
    return project


@cache
def tools_at(root: Path) -> Mapping[str, Declaration]:
    """The project's tools by name, imported as their function imports them: as modules of ``tools``."""
    specs = project_at(root).specs
    if specs and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    found = {spec["name"]: declared(resolve_name(f"{spec['module']}:{spec['name']}")) for spec in specs}
    return MappingProxyType({name: tool for name, tool in found.items() if tool})


def settings_at(root: Path) -> Mapping[str, str]:
    """What the project's settings tell its tools on the local stack: their variables, and the secrets that this
    process's environment has."""
    own = project_at(root).own(PLACE.stage)
    variables = {name: PLACE.fill(value) for name, value in own.environment.items()}
    secrets = {name: os.environ[name] for name in own.secrets if os.environ.get(name)}
    return MappingProxyType({**variables, **secrets})


def agent_from(
    profile: str | Mapping[str, Any], root: Path, tools: Mapping[str, ToolSpec], more: Collection[str]
) -> Profile:
    """The profile of this name, of the project or else of the library, or of this content; with ``more`` of these
    ``tools`` beside those that it names. Raises ValueError."""
    if isinstance(profile, Mapping):
        agent = _checked(profile, tools)
    else:
        files = [profile_from(json.loads(path.read_bytes())) for path in project_at(root).profiles]
        known = {**all_profiles(), **{file.name: file for file in files}}
        if profile not in known:
            raise ValueError(f"There is no profile {profile!r}; there are {', '.join(sorted(known))}.")
        agent = known[profile]
    return replace(agent, tools=(*agent.tools, *(name for name in more if name not in agent.tools)))


def _checked(content: Mapping[str, Any], tools: Mapping[str, ToolSpec]) -> Profile:
    """The profile of a file's content, checked as a file is."""
    try:
        ProfileFile.model_validate(content, context={"tools": tools})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ValueError(f"The profile is wrong: {field}: {first['msg']}.") from None
    return profile_from(dict(content))
