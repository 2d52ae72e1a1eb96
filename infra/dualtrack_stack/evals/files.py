"""Reads the cases of a project: ``evals/**/*.toml``, each problem with file, line and what to write."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.profiles import all_profiles, profile_from
from dualtrack.tools.registry import IN_HOUSE
from pydantic import ValidationError

from dualtrack_stack.evals.case import Case, CaseFile, Checks, GivenResult, Labelled, Origin, Turn, WantedCall
from dualtrack_stack.local.testing.agents import project_at
from dualtrack_stack.project.file import unknown
from dualtrack_stack.project.model import BadProject, sentence
from dualtrack_stack.project.plain_file import plain_text
from dualtrack_stack.project.toml_lines import line_of, lines_of, no_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FOLDER: Final = "evals"
RECORDED: Final = "recorded"
"""The folder of recorded answers, in `FOLDER`."""
MAX_BYTES: Final = 4_000_000
FIRST_PROFILE: Final = "assistant"

_TABLES: Final[Mapping[str, type[Checks] | type[Any]]] = {
    "case": Case,
    "turn": Turn,
    "labelled": Labelled,
    "calls": WantedCall,
    "results": GivenResult,
    "origin": Origin,
}


@dataclass(frozen=True, slots=True)
class FoundCase:
    """A case with its ``id`` (its file's path in the folder, and its name), file and line, and its profile."""

    id: str
    file: str
    line: int
    profile: str
    case: Case


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder has, in the order of its files."""

    cases: tuple[FoundCase, ...]
    labelled: tuple[Labelled, ...]


def read_cases(root: Path, path: Path | None = None) -> Found:
    """The cases of a file or a folder, by default those of the project's `FOLDER`. Raises `BadProject`, with a line for
    each problem, and FileNotFoundError if there is nothing at that path."""
    place = path or root / FOLDER
    if not place.exists():
        raise FileNotFoundError(place)
    files = [place] if place.is_file() else sorted(place.rglob("*.toml"))
    cases: list[FoundCase] = []
    labelled: list[Labelled] = []
    problems: list[str] = []
    for file in files:
        shown = _shown(file, root)
        try:
            text = plain_text(file, shown, MAX_BYTES, "write several files")
            read, lines = _parsed(text, shown)
            cases += _found(root, file, shown, read, lines)
            labelled += read.labelled
        except BadProject as wrong:
            problems.append(str(wrong))
    if problems:
        raise BadProject("\n".join(problems))
    return Found(tuple(cases), tuple(labelled))


def parse_cases(text: str, shown: str) -> CaseFile:
    """The file with this text. Raises `BadProject`."""
    return _parsed(text, shown)[0]


def _parsed(text: str, shown: str) -> tuple[CaseFile, Mapping[tuple[str | int, ...], int]]:
    try:
        written, lines = json.dumps(tomllib.loads(text)), lines_of(text)
    except tomllib.TOMLDecodeError as error:
        raise BadProject(f"{shown}:{no_toml(text, error)}") from None
    except (TypeError, RecursionError) as error:
        raise BadProject(f"{shown}:1: write texts, numbers, lists and tables alone ({error})") from None
    try:
        return CaseFile.model_validate_json(written), lines
    except ValidationError as error:
        told = [
            _problem(problem, lines, shown)
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise BadProject("\n".join(dict.fromkeys(told))) from None


def _problem(problem: Any, lines: Mapping[tuple[str | int, ...], int], shown: str) -> str:
    path = tuple(part for part in problem["loc"] if part not in ("[key]", "WantedCall"))
    if problem["type"] == "extra_forbidden":
        said = unknown(str(path[-1]), _fields(path[:-1]))
    elif problem["type"] == "missing":
        said = "it is missing: write it"
    else:
        said = problem["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    named = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
    return sentence(f"{shown}:{line_of(lines, path)}: {named}: {said}")


def _fields(table: Sequence[str | int]) -> list[str]:
    """The names that a table may have."""
    kinds = [part for part in table if part in _TABLES]
    model = _TABLES[str(kinds[-1])] if kinds else CaseFile
    return [field.alias or name for name, field in model.model_fields.items()]


def _found(
    root: Path, file: Path, shown: str, read: CaseFile, lines: Mapping[tuple[str | int, ...], int]
) -> Iterator[FoundCase]:
    """Its cases, whose profiles and tools there are. Raises `BadProject`."""
    project = project_at(root)
    own = [profile_from(json.loads(path.read_bytes())) for path in project.profiles]
    profiles = {**all_profiles(), **{profile.name: profile for profile in own}}
    tools = {*IN_HOUSE, *(spec["name"] for spec in project.specs)}
    problems: list[str] = []
    named: set[str] = set()
    found = []
    base = root / FOLDER
    group = (
        (file.relative_to(base) if file.is_relative_to(base) else Path(file.name)).with_suffix("").as_posix()
    )
    for number, case in enumerate(read.case):
        line = line_of(lines, ("case", number))
        at = f"{shown}:{line}: case {case.name!r}"
        profile = case.profile or read.profile or FIRST_PROFILE
        if case.name in named:
            problems.append(f"{at}: there is one of this name above: give it another")
        named.add(case.name)
        if profile not in profiles:
            problems.append(f"{at}: profile {profile!r}: {unknown(profile, profiles)}")
        elif not profiles[profile].mcp:  # a server's tools are not known here
            there = tools | {result.tool for result in case.results}  # one with results need not be here
            problems += [
                f"{at}: tool {name!r}: {unknown(name, there)}" for name in _tools(case) if name not in there
            ]
        found.append(FoundCase(f"{group}/{case.name}", shown, line, profile, case))
    if problems:
        raise BadProject("\n".join(map(sentence, dict.fromkeys(problems))))
    return iter(found)


def _tools(case: Case) -> Iterator[str]:
    for checks in (case, *case.turn):
        yield from (call.tool for call in checks.calls)
        yield from checks.never_calls


def _shown(file: Path, root: Path) -> str:
    full = file.resolve()
    return full.relative_to(root.resolve()).as_posix() if full.is_relative_to(root.resolve()) else str(file)
