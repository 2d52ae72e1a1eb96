"""``dualtrack.toml``: the settings of a project, for every stage and for one, checked.

``[settings]`` has settings of `dualtrack.settings` for every stage, ``[stage.NAME]`` fields of
`dualtrack_stack.stages.StageSettings` and ``[stage.NAME.settings]`` settings for one; ``[tools]`` the function of the
project's tools (`OwnFunction`), with ``[stage.NAME.tools]`` over it; ``[prices]`` price classes; ``[models]`` prices of
models by contract, with ``[stage.NAME.models]`` over them, which become a setting; ``[mcp.NAME]`` MCP servers, with
those of ``[stage.NAME.mcp.NAME]`` in their places, which add to a setting.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from dualtrack.credits.plans import PRICE_CLASSES
from dualtrack.models.contract_prices import wrong_name, wrong_price
from dualtrack.settings import declared, text_of
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dualtrack_stack.project.mcp_table import McpTables, by_address, by_command
from dualtrack_stack.project.model import BadProject, ProjectFile, StageFile, WrongTable, sentence
from dualtrack_stack.project.plain_file import plain_text
from dualtrack_stack.project.toml_lines import line_of, lines_of, no_toml
from dualtrack_stack.project.tools_table import PermissionTable, ToolsTable, own_function
from dualtrack_stack.roots import PACKAGE
from dualtrack_stack.roots import PROJECT_FILE as FILE
from dualtrack_stack.stages import StageSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

DEFAULTS: Final = PACKAGE / "stages.toml"
"""Each stage's fields where the project says nothing."""
STAGE_NAMES: Final = ("local", "staging", "prod")
MAX_BYTES: Final = 64_000

REMOVED: Final[Mapping[str, str]] = MappingProxyType({})
"""What to write in place of a setting or field that an earlier release had, by ``settings.NAME``, ``stage.NAME`` or
``tools.NAME``."""

_PRICE_CLASS: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MOST_CREDITS: Final = 10_000
_MOST_CLASSES: Final = 50


def _setting(name: str) -> str:
    """The name of a setting that may stand in a file."""
    entry = declared().get(name)
    if entry is None:
        raise ValueError(unknown(f"settings.{name}", declared()))
    if entry.is_key:
        raise ValueError("a key is no setting: put it into the Parameter Store, docs/aws/settings.md")
    if not entry.declared.in_file:
        raise ValueError("it is set in the environment alone: leave it out")
    return name


def unknown(name: str, there_are: Iterable[str]) -> str:
    """What to write in place of ``settings.NAME`` and the like, which there is not."""
    if instead := REMOVED.get(name):
        return f"it was removed: {instead}"
    names = sorted(there_are)
    alike = difflib.get_close_matches(name.rpartition(".")[2], names, 1)
    if alike:
        return f"there is no such name: write {alike[0]}"
    return f"there is no such name: write one of {', '.join(names) if len(names) < 40 else 'docs/aws/settings.md'}"


def _price_class(name: str) -> str:
    if not _PRICE_CLASS.fullmatch(name):
        raise ValueError("write small letters, digits and _, the first a letter, at most 32")
    if name in PRICE_CLASSES:
        raise ValueError("this class is dualtrack's own: write another name")
    return name


def _model_name(name: str) -> str:
    if problem := wrong_name(name):
        raise ValueError(problem)
    return name


def _model_price(entry: dict[str, Any]) -> dict[str, Any]:
    if problem := wrong_price(entry):
        raise ValueError(problem)
    return entry


SettingValues = dict[Annotated[str, AfterValidator(_setting)], str | bool | int | float | list[Any]]
Prices = dict[Annotated[str, AfterValidator(_price_class)], Annotated[int, Field(ge=0, le=_MOST_CREDITS)]]
ModelPrices = dict[
    Annotated[str, AfterValidator(_model_name)], Annotated[dict[str, Any], AfterValidator(_model_price)]
]
_MODEL_PRICES: Final = "DUALTRACK_MODEL_PRICES"
_MCP_SERVERS: Final = "MCP_SERVERS"
_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class StageTable(BaseModel):
    """``[stage.NAME]``. Its further fields are those of `StageSettings`, which are checked with the defaults."""

    model_config = ConfigDict(extra="allow", strict=True)

    settings: SettingValues = {}
    tools: ToolsTable = ToolsTable()
    models: ModelPrices = {}
    mcp: McpTables = {}


class StageTables(BaseModel):
    """``[stage]``."""

    model_config = _STRICT

    local: StageTable = StageTable()
    staging: StageTable = StageTable()
    prod: StageTable = StageTable()


class FileTable(BaseModel):
    """The whole file."""

    model_config = _STRICT

    settings: SettingValues = {}
    stage: StageTables = StageTables()
    tools: ToolsTable = ToolsTable()
    prices: Annotated[Prices, Field(max_length=_MOST_CLASSES)] = {}
    models: ModelPrices = {}
    mcp: McpTables = {}


_FIELDS: Final = tuple(item.name for item in fields(StageSettings) if item.name != "name")


def read_file(root: Path) -> ProjectFile:
    """The file of a project, the defaults if it has none. Raises `BadProject`, with a line for each problem."""
    return parse_file(_text(root / FILE))


def parse_file(text: str) -> ProjectFile:
    """The file with this text. Raises `BadProject`, likewise."""
    try:
        written = json.dumps(tomllib.loads(text))
        lines = lines_of(text)
    except tomllib.TOMLDecodeError as error:
        raise BadProject(f"{FILE}:{no_toml(text, error)}") from None
    except TypeError as error:
        raise BadProject(f"{FILE}:1: a date or a time is no setting: write a text ({error})") from None
    except RecursionError:
        raise BadProject(f"{FILE}:1: it is nested too deep: write tables as this file's are") from None
    try:
        file = FileTable.model_validate_json(written)
    except ValidationError as error:
        raise BadProject(_told(lines, _problems(error))) from None
    problems: list[tuple[tuple[str | int, ...], str]] = []
    stages = {}
    for name in STAGE_NAMES:
        if no_fields := [key for key in getattr(file.stage, name).model_extra if key not in _FIELDS]:
            paths = [("stage", name, key) for key in no_fields]
            problems += [(path, _unknown(path)) for path in paths]
            continue
        try:
            stages[name] = _stage(name, file, lines)
        except ValidationError as error:
            problems += _problems(error, "stage", name)
        except WrongTable as wrong:
            problems.append((_written(lines, name, wrong), str(wrong)))
    if problems:
        raise BadProject(_told(lines, problems))
    tables = (file.mcp, *(getattr(file.stage, name).mcp for name in STAGE_NAMES))
    servers = frozenset(name for table in tables for name in table)
    return ProjectFile(MappingProxyType(stages), MappingProxyType(file.prices), servers)


def _text(path: Path) -> str:
    try:
        return plain_text(path, FILE, MAX_BYTES, "write less")
    except FileNotFoundError:
        return ""


def _stage(name: str, file: FileTable, lines: Mapping[tuple[str | int, ...], int]) -> StageFile:
    """Raises ValidationError for the stage's fields, `WrongTable` for its tools and servers."""
    table: StageTable = getattr(file.stage, name)
    changed = table.model_extra or {}
    defaults = tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))[name]
    stage = TypeAdapter(StageSettings).validate_json(json.dumps({**defaults, "name": name, **changed}))
    settings, sources = {}, {}
    for place, given in ((("settings",), file.settings), (("stage", name, "settings"), table.settings)):
        for setting, value in given.items():
            settings[setting] = json.dumps(value) if isinstance(value, list) else text_of(value)
            sources[setting] = f"{FILE}:{line_of(lines, (*place, setting))}"
    if models := {**file.models, **table.models}:
        where = ("stage", name, "models") if table.models else ("models",)
        settings[_MODEL_PRICES] = json.dumps(models, separators=(",", ":"))
        sources[_MODEL_PRICES] = f"{FILE}:{line_of(lines, where)}"
    servers = {**file.mcp, **table.mcp}
    if listed := by_address(servers):
        where = ("stage", name, "mcp", listed[0]["name"])
        settings[_MCP_SERVERS] = _with_servers(settings.get(_MCP_SERVERS, ""), listed)
        sources.setdefault(_MCP_SERVERS, f"{FILE}:{line_of(lines, where if where in lines else where[2:])}")
    return StageFile(
        stage,
        MappingProxyType(changed),
        own_function(file.tools, table.tools),
        MappingProxyType(settings),
        MappingProxyType(sources),
        tuple(by_command(servers)),
    )


def _with_servers(written: str, listed: list[dict[str, Any]]) -> str:
    """The setting's JSON with the tables' servers behind its own; what is no list is left for its check to refuse."""
    try:
        before = json.loads(written or "[]")
    except ValueError:
        return written
    return json.dumps([*before, *listed]) if isinstance(before, list) else written


def _written(
    lines: Mapping[tuple[str | int, ...], int], stage: str, wrong: WrongTable
) -> tuple[str | int, ...]:
    """Where a value of a merged table stands: in the stage's, or in the general one."""
    own = ("stage", stage, wrong.table, *wrong.place[:1])
    return (*own[:3], *wrong.place) if own in lines else (wrong.table, *wrong.place)


def _problems(error: ValidationError, *prefix: str) -> list[tuple[tuple[str | int, ...], str]]:
    """Path and sentence of each."""
    found = []
    for problem in error.errors(include_url=False, include_input=False):
        path = (*prefix, *(part for part in problem["loc"] if part != "[key]"))
        found.append((path, _sentence(path, problem["type"], problem["msg"])))
    return found


def _sentence(path: tuple[str | int, ...], kind: str, said: str) -> str:
    if kind == "extra_forbidden":
        return _unknown(path)
    if kind == "missing":
        return "it is missing: write it"
    return (
        said.removeprefix("Value error, ")
        .replace("Input should", "it should")
        .replace("String should", "it should")
    )


def _unknown(path: tuple[str | int, ...]) -> str:
    table, name = path[:-1], path[-1]
    if table == ():
        return unknown(str(name), FileTable.model_fields)
    if table == ("stage",):
        hint = " (a stage's fields stand in [stage.staging] and the like)" if name in _FIELDS else ""
        return f"there is no such stage: write one of {', '.join(STAGE_NAMES)}{hint}"
    if table[-1] == "tools":
        return unknown(f"tools.{name}", ToolsTable.model_fields)
    if "allow" in table:
        return unknown(f"tools.allow.{name}", PermissionTable.model_fields)
    return unknown(f"stage.{name}", (*_FIELDS, "settings", "tools", "models", "mcp"))


def _told(
    lines: Mapping[tuple[str | int, ...], int], problems: Iterable[tuple[tuple[str | int, ...], str]]
) -> str:
    told = (f"{FILE}:{line_of(lines, path)}: {'.'.join(map(str, path))}: {said}" for path, said in problems)
    return "\n".join(dict.fromkeys(sentence(text) for text in told))
