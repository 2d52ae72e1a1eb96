"""What a project has, as frozen values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack_stack.project.stdio_server import StdioServer
    from dualtrack_stack.stages import StageSettings

PROFILES: Final = Path("python", "dualtrack", "profiles")
"""The profiles' folder in the core layer."""
TOOLS: Final = Path("python", "dualtrack", "tools", "project.json")
"""What the model sees of a project's tools, in the core layer; `dualtrack.tools.registry` reads it."""


class BadProject(ValueError):
    """Files of a project are wrong: a line for each problem, ``file:line: what is wrong: what to write``."""


class WrongTable(ValueError):
    """A value of ``[tools]`` or ``[mcp]`` is wrong, in the general table or in a stage's. ``place``: its path in
    ``table``."""

    def __init__(self, table: str, place: tuple[str | int, ...], problem: str) -> None:
        super().__init__(problem)
        self.table, self.place = table, place


def sentence(text: str) -> str:
    """A problem on one line of at most 1,000 characters, whatever name or value is in it."""
    return one_line(text[:1_000])


@dataclass(frozen=True, slots=True)
class Permission:
    """What the function of the project's tools may do, as in a statement of a policy that allows it.

    Resources may have ``{stage}``, ``{region}`` and ``{account}`` in them.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """The function that runs the project's tools: the table ``[tools]``, with ``[stage.NAME.tools]`` over it.

    ``secrets``: names, each a parameter of the stage in the Parameter Store. ``environment``: further variables, whose
    values may have ``{stage}``, ``{region}`` and ``{account}`` in them. ``memory`` in MB; ``seconds``: the function's
    timeout. Without ``subnets`` it is outside any VPC.
    """

    allow: tuple[Permission, ...] = ()
    secrets: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    memory: int = 512
    seconds: int = 55
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageFile:
    """What the project's file and the defaults say of a stage.

    ``changed``: the fields of ``stage`` that the file sets; ``settings`` by their names; ``sources``: file and line of
    each; ``stdio``: the MCP servers by command, which the local stack starts.
    """

    stage: StageSettings
    changed: Mapping[str, Any]
    own: OwnFunction
    settings: Mapping[str, str]
    sources: Mapping[str, str]
    stdio: tuple[StdioServer, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """``dualtrack.toml``, checked: every stage, the project's price classes, in credits, and the names of the MCP
    servers that it has in any stage."""

    stages: Mapping[str, StageFile]
    prices: Mapping[str, int]
    servers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Project:
    """``specs``: the project's tools, as `dualtrack_stack.tool_specs.spec_of` has them, of kind ``own``; ``module`` is
    ``tools.billing.refunds`` for ``tools/billing/refunds.py``. ``prices``: its price classes, in credits.
    ``profiles``: its profiles' files. ``stages``: what its file says of each. ``notes``: what is right, but
    worth a word.
    """

    root: Path
    specs: tuple[Mapping[str, Any], ...] = ()
    prices: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    profiles: tuple[Path, ...] = ()
    stages: Mapping[str, StageFile] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()

    def own(self, stage: str) -> OwnFunction:
        """The function of its tools in a stage."""
        return self.stages[stage].own if stage in self.stages else OwnFunction()


def packaged(project: Project) -> Mapping[Path, bytes]:
    """The project's files in the core layer: its profiles, and its tools if it has any."""
    files = {PROFILES / path.name: path.read_bytes() for path in project.profiles}
    if project.specs or project.prices:
        listed = {"tools": list(project.specs), "prices": dict(project.prices)}
        files[TOOLS] = json.dumps(listed, indent=1, ensure_ascii=False).encode()
    return MappingProxyType(files)
