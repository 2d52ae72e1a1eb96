"""Profiles as they are packaged: a deployment's own files beside the library's, every one of them checked.

They are checked here and not in the functions: a bad profile fails the tests, the synthesis and the start of the local
stack, never a chat, and no function loads the checking code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from dualtrack.chat.cost_hold import cost_settings
from dualtrack.chat.turn_request import call_fields
from dualtrack.chat_times import MOST_CALL_SECONDS, seconds_needed
from dualtrack.memory.notes import most_output
from dualtrack.output_schema import refused_schema
from dualtrack.plugin import plugins
from dualtrack.profiles import PLACEHOLDER, UTILITY, AfterMaxTurns, WhenSummarised, profile_from
from dualtrack.requests import MAX_PAUSE_SECONDS
from dualtrack.settings import declared
from dualtrack.tools.mcp.config import NAME_PATTERN, parse_servers
from dualtrack.tools.registry import IN_HOUSE
from dualtrack.vocabulary import ApprovalRule  # noqa: TC002 - pydantic reads it
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
)

from dualtrack_stack import roots
from dualtrack_stack.project.model import sentence
from dualtrack_stack.project.plain_file import read_plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dualtrack.settings import Settings
    from pydantic_core import ErrorDetails

MAX_BYTES: Final = 1_000_000
_AT_LINE: Final = re.compile(r"at line (\d+)")
_MAX_COST: Final = declared()["DUALTRACK_MAX_COST"].declared.most
LIBRARY: Final = roots.LIBRARY / "profiles"
_OPTIONAL: Final = '; a ? behind the name ("time?") takes it where it is'
OF_PLUGINS: Final = tuple(roots.LIBRARY.glob("plugins/*/profiles/*.json"))


class BadProfile(ValueError):
    """A profile's file is invalid. The message names the files, their fields and the problems."""


def _known(name: str, info: ValidationInfo) -> str:
    """A tool's name. The validation's context has ``tools``, those that there are; by default the library's. None for a
    profile of the library, which may name the tool of a plug-in that is not there."""
    there_are = (info.context or {}).get("tools", IN_HOUSE)
    if there_are is not None and name not in there_are:
        raise ValueError(f"there is no tool {name!r}; there are {', '.join(there_are)}")
    return name


def _with_one_placeholder(template: str) -> str:
    if template.count(PLACEHOLDER) != 1:
        raise ValueError(f"must contain {PLACEHOLDER} exactly once")
    return template


class DualTrackFile(BaseModel):
    """The conversation as the summarised track."""

    model_config = ConfigDict(extra="forbid", strict=True)

    policy: Literal["dual_track"] = "dual_track"
    whole_characters: Annotated[int, Field(ge=0, le=100_000)] = 1_000
    summaries: WhenSummarised | None = None


class WindowFile(BaseModel):
    """The conversation's last exchanges."""

    model_config = ConfigDict(extra="forbid", strict=True)

    policy: Literal["window"]
    exchanges: Annotated[int, Field(ge=1, le=50)] = 2


class ToolRoundsFile(BaseModel):
    """The whole conversation, with the last tool rounds in full."""

    model_config = ConfigDict(extra="forbid", strict=True)

    policy: Literal["tool_rounds"]
    rounds: Annotated[int, Field(ge=0, le=1_000)] = 10


HistoryFile = Annotated[DualTrackFile | WindowFile | ToolRoundsFile, Field(discriminator="policy")]


ToolPattern = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.*-]{1,64}$")]


class ApprovalFile(BaseModel):
    """Which tool calls need approval."""

    model_config = ConfigDict(extra="forbid", strict=True)

    default: ApprovalRule = "writes"
    ask: Annotated[list[ToolPattern], Field(max_length=100)] = []
    allow: Annotated[list[ToolPattern], Field(max_length=100)] = []


def checkable(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that answers can be held to. Raises ValueError."""
    if problem := refused_schema(schema):
        raise ValueError(problem)
    return schema


class OutputFile(BaseModel):
    """The form of the answers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    schema_: Annotated[dict[str, Any], Field(alias="schema"), AfterValidator(checkable)]


class ProfileFile(BaseModel):
    """A profile's file, with the fields of `dualtrack.profiles.Profile`; ``system`` and lists as JSON has them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    description: Annotated[str, Field(min_length=1, max_length=300)]
    system: Annotated[list[str], Field(min_length=1)]
    tools: list[Annotated[str, AfterValidator(_known)]]
    mcp: list[Annotated[str, Field(pattern=rf"^(?:\*|{NAME_PATTERN.pattern}\??)$")]]
    trust: list[Annotated[str, Field(pattern=rf"^{NAME_PATTERN.pattern}$")]] | None = None
    max_turns: Annotated[int, Field(ge=1, le=50)]
    after_max_turns: AfterMaxTurns = "limit"
    max_tokens: Annotated[int, Field(ge=1, le=64_000)]
    result_limit: Annotated[int, Field(ge=1_000, le=2_000_000)]
    context_tokens: Annotated[int, Field(ge=20_000, le=900_000)] = 95_000
    track_tokens: Annotated[int, Field(ge=4_000, le=400_000)] = 0
    history: HistoryFile = DualTrackFile()
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    query_template: Annotated[str, Field(max_length=2_000), AfterValidator(_with_one_placeholder)] = (
        PLACEHOLDER
    )
    suggestions: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=6)
    ] = []
    max_cost: Annotated[float, Field(ge=0, le=_MAX_COST, allow_inf_nan=False)] = 0.0
    rerank: bool = True
    approval: ApprovalFile = ApprovalFile()
    pause_seconds: Annotated[int, Field(ge=60, le=MAX_PAUSE_SECONDS)] = 0
    output: OutputFile | None = None


_FIELDS: Final[dict[str, Any]] = {
    name: field for plugin in plugins() for name, field in plugin.profile_fields.items()
}
CheckedFile: Final[type[ProfileFile]] = create_model("ProfileFile", __base__=ProfileFile, **_FIELDS)
"""With the fields of plug-ins."""


def profiles_folder(settings: Settings, root: Path) -> Path:
    """Where a project's profiles are, whether the folder is there or not."""
    named = settings.dualtrack_profiles
    return Path(named) if named else root / "profiles"


def own_profiles(
    settings: Settings,
    root: Path | None = None,
    tools: Collection[str] = (),
    elsewhere: Collection[str] = (),
) -> tuple[Path, ...]:
    """The deployment's profiles: the JSON files of the folder ``DUALTRACK_PROFILES``, else of ``profiles/`` at the
    project's root, if it is there. A profile replaces one of the library with the same name.
    ``tools``: the names of the project's tools; ``elsewhere``: the MCP servers that another stage has, or the laptop.

    Raises `BadProfile`, for the library's own files too.
    """
    folder = profiles_folder(settings, root or roots.project_root())
    if settings.dualtrack_profiles and not folder.is_dir():
        raise BadProfile(f"DUALTRACK_PROFILES: there is no folder {folder}")
    own = tuple(sorted(folder.glob("*.json")))
    servers = [*dict.fromkeys((*_servers(settings), *elsewhere))]
    files = [
        *((path, None) for path in [*sorted(LIBRARY.glob("*.json")), *sorted(OF_PLUGINS)]),
        *((path, (*IN_HOUSE, *tools)) for path in own),
    ]
    problems = [
        problem for path, names in files for problem in _problems(path, _shown(path, root), servers, names)
    ]
    if problems:
        raise BadProfile("\n".join(problems))
    return own


def long_calls(paths: Collection[Path], settings: Settings, root: Path | None = None) -> Iterator[str]:
    """A line for each profile whose calls may write more than there is time for."""
    costs = cost_settings(settings)
    for path in paths:
        content = read_plain(path, MAX_BYTES)
        profile = profile_from(json.loads(content))
        fields = call_fields(
            profile, profile.model or costs.model, most_output(profile), costs.summaries.thinking
        )
        needed = seconds_needed(fields["max_tokens"])
        if needed > MOST_CALL_SECONDS:
            yield (
                f"{_shown(path, root)}:{_line_of(content, 'max_tokens')}: max_tokens: with thinking's room a call may"
                f" write {fields['max_tokens']:,} tokens, some {needed} s: it is cut after {MOST_CALL_SECONDS} s,"
                " and its answer can be continued"
            )


def _shown(path: Path, root: Path | None) -> str:
    return path.relative_to(root).as_posix() if root and path.is_relative_to(root) else str(path)


def _servers(settings: Settings) -> list[str]:
    """The MCP servers that a profile may name."""
    own = ["github"] if settings.github_mcp_image else []
    return [*own, *(server.name for server in parse_servers(settings.mcp_servers))]


def _problems(path: Path, shown: str, servers: Collection[str], tools: Collection[str] | None) -> list[str]:
    """The problems of a file, a line for each field. ``servers`` and ``tools``: those that it may name (`_known`)."""
    try:
        content = read_plain(path, MAX_BYTES)  # of a larger one so much that it is refused
    except OSError as error:
        return [sentence(f"{shown}:1: it cannot be read: {error.strerror}")]
    try:
        profile = CheckedFile.model_validate_json(content, context={"tools": tools})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        return [sentence(f"{shown}:{_line(content, problem)}: {_told(problem)}") for problem in problems]
    there_are = (
        f"there are {', '.join(servers)}" if servers else "none is configured (MCP_SERVERS, GITHUB_MCP_URL)"
    )
    wrong = [
        (
            field,
            f"{field}.{place}: there is no MCP server '{name}'; {there_are}{_OPTIONAL if field == 'mcp' else ''}",
        )
        for field, names in (("mcp", profile.mcp), ("trust", profile.trust or ()))
        for place, name in enumerate(names)
        if name not in servers and not (field == "mcp" and (name == "*" or name.endswith("?")))
    ]
    if profile.name == UTILITY.name:
        wrong.insert(0, ("name", f"name: {UTILITY.name} is dualtrack's own"))
    if profile.name != path.stem:
        wrong.insert(0, ("name", f"name: must be {path.stem}, like the file's name"))
    return [sentence(f"{shown}:{_line_of(content, field)}: {problem}") for field, problem in wrong]


def _told(problem: ErrorDetails) -> str:
    where = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        known = f": write one of {', '.join(CheckedFile.model_fields)}" if len(problem["loc"]) == 1 else ""
        return f"{where}: there is no such field{known}"
    if problem["type"] == "missing":
        return f"{where}: it is missing: write it"
    said = problem["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    return f"{where}: {said}" if where else said


def _line(content: bytes, problem: ErrorDetails) -> int:
    """Of a syntax error its own; of a field that of its name, which no text in the file can look like."""
    if at := _AT_LINE.search(problem["msg"]) if problem["type"] == "json_invalid" else None:
        return int(at[1])
    return _line_of(content, str(problem["loc"][0]) if problem["loc"] else "")


def _line_of(content: bytes, field: str) -> int:
    found = re.search(rb'(?<!\\)"' + re.escape(field.encode()) + rb'"\s*:', content)
    return content.count(b"\n", 0, found.start()) + 1 if found else 1
