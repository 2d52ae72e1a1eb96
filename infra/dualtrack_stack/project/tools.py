"""A project's tools: the files of ``tools/``, and what the model sees of the functions in them.

The modules are imported by a process of its own (`dualtrack_stack.project.importing`).
"""

from __future__ import annotations

import contextlib
import json
import keyword
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, TYPE_CHECKING, Any, Final

from dualtrack.indirect_calls import INDIRECT
from dualtrack.text import one_line
from dualtrack.tool_rules import MAX_TOOLS
from dualtrack.tools.registry import IN_HOUSE

from dualtrack_stack.project.function import TOOLS
from dualtrack_stack.project.model import BadProject, sentence
from dualtrack_stack.roots import own_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dualtrack_stack.project.importing import ModuleReport
    from dualtrack_stack.project.model import OwnFunction

MODULE_SECONDS: Final = 20.0
"""What importing a module may take. Lambda gives a function 10 s to start, then starts it again (AWS Lambda Developer
Guide, "Understanding the Lambda execution environment lifecycle")."""
ALL_SECONDS: Final = 60.0
HEAVY_SECONDS: Final = 0.5
"""From here on a note says what importing a module takes."""
MAX_SOURCE: Final = 1_000_000
MAX_FOLDER: Final = 50_000_000
MAX_FILES: Final = 5_000
_REPORT: Final = 50_000_000

_HUNG: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_LEFT_OUT: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    """``specs`` as in `dualtrack_stack.project.model.Project`; ``lines``: ``file:line`` of each, by its name."""

    specs: tuple[Mapping[str, Any], ...] = ()
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_tools(
    root: Path,
    prices: Iterable[str],
    own: OwnFunction,
    environ: Mapping[str, str],
    seconds: float = MODULE_SECONDS,
) -> DeclaredTools:
    """The tools of the project in ``root``, an absolute path.

    ``prices``: the price classes that there are. ``own``: the function that runs them; ``environ``: what the modules
    find in the environment besides its variables and secrets. Raises `BadProject`, with a line for each problem.
    """
    modules = _modules(root)
    if not modules:
        return DeclaredTools()
    wanted = {"modules": modules, "prices": [*prices]}
    imported = _import(root, wanted, {**environ, **_variables(own, environ)}, seconds)
    problems = list(dict.fromkeys(sentence(module["problem"]) for module in imported if module["problem"]))
    tools = [tool for module in imported for tool in module["tools"]]
    if problems := [*problems, *_wrong(tools, own)]:
        raise BadProject("\n".join(problems))
    return DeclaredTools(
        tuple(tool["spec"] for tool in tools),
        tuple(tool["line"] for tool in tools),
        tuple(noted(imported)),
    )


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def _modules(root: Path) -> list[tuple[str, str]]:
    """Name and path of each, below ``root``. Raises `BadProject`."""
    found, problems, size, count = [], [], 0, 0
    for path in _paths(root / TOOLS):
        name = path.relative_to(root).as_posix()
        count, status = count + 1, path.stat() if path.exists() else None
        problem = _file_problem(root, path, status)
        if problem:
            problems.append(f"{name}:1: {problem}")
            continue
        size += status.st_size if status else 0
        if path.suffix == ".py":
            parts = path.relative_to(root).with_suffix("").parts
            found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), name))
        if count > MAX_FILES or size > MAX_FOLDER:
            problems.append(
                f"{TOOLS}:1: it has more than {MAX_FILES:,} files or {MAX_FOLDER:,} bytes: put data elsewhere"
            )
            break
    if problems:
        raise BadProject("\n".join(problems))
    return found


def _paths(folder: Path) -> Iterator[Path]:
    """Files, and links whatever they lead to; sorted."""
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        yield from (Path(parent) / name for name in sorted((*links, *files)) if not name.startswith("."))


def _file_problem(root: Path, path: Path, status: os.stat_result | None) -> str:
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root / TOOLS)):
        return f"it is a link out of {TOOLS}/: put the file itself there"
    if status is None:
        return "it is a link to nothing: remove it"
    if not S_ISREG(status.st_mode) and not S_ISDIR(status.st_mode):
        return "it is no file: remove it"
    return _module_problem(root, path, status) if path.suffix == ".py" and not path.is_dir() else ""


def _module_problem(root: Path, path: Path, status: os.stat_result) -> str:
    if status.st_size > MAX_SOURCE:
        return f"it has {status.st_size:,} bytes: write modules of at most {MAX_SOURCE:,}, and data into other files"
    wrong = [part for part in path.relative_to(root).with_suffix("").parts if not _is_name(part)]
    if wrong:
        return f"{wrong[0]!r} is no name of a module: call it {_name_like(wrong[0])!r}"
    return ""


def _is_name(part: str) -> bool:
    return part.isidentifier() and part.isascii() and not keyword.iskeyword(part)


def _name_like(part: str) -> str:
    name = re.sub(r"\W", "_", part, flags=re.ASCII)
    return f"{name}_" if keyword.iskeyword(name) else f"_{name}" if name[:1].isdigit() else name


# ── modules ───────────────────────────────────────────────────────────────────────────────────────


def _variables(own: OwnFunction, environ: Mapping[str, str]) -> dict[str, str]:
    """What a module finds at its import, as in the function; of a secret only that it is there."""
    return {
        "AWS_DEFAULT_REGION": environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        **own.environment,
        **dict.fromkeys(own.secrets, "not-set"),
    }


def _import(
    root: Path, wanted: Mapping[str, Any], environ: Mapping[str, str], seconds: float
) -> list[ModuleReport]:
    """What came of each module, up to one that ended the process. Raises `BadProject` for that one."""
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as said:
        command = own_python(
            "dualtrack_stack.project.importing", str(root), str(report.fileno()), str(seconds)
        )
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            pass_fds=(report.fileno(),),
            process_group=0,
        )
        try:
            process.communicate(json.dumps(wanted).encode(), ALL_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):  # what a module has started ends as well
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        lines = [json.loads(line) for line in _read(report, _REPORT).splitlines()]
        if process.returncode == 0:
            return [line for line in lines if "tools" in line]
        begun = next((line["begins"] for line in reversed(lines) if "begins" in line), "")
        raise BadProject(_ended(root, begun, process.returncode, _read(said, 100_000), seconds))


def _read(file: IO[bytes], most: int) -> str:
    file.seek(0)
    return file.read(most).decode("utf-8", "replace")


def _ended(root: Path, path: str, code: int, said: str, seconds: float) -> str:
    """Why there is no result of a module."""
    if not path:
        return f"{TOOLS}:1: Python cannot be started to read the tools: {one_line(said[-1_000:])}"
    if "Timeout (" in said or code == -signal.SIGKILL:
        inside = (found for found in _HUNG.finditer(said) if found["file"].startswith(f"{root / TOOLS}/"))
        deepest = next(inside, None)
        where = f"{Path(deepest['file']).relative_to(root)}:{deepest['line']}" if deepest else f"{path}:1"
        return f"{where}: importing {path} takes more than {seconds:.0f} s: leave what takes long to the tool"
    return f"{path}:1: the process ended with exit code {code} when it was imported: leave that to a function"


def _wrong(tools: Sequence[Mapping[str, Any]], own: OwnFunction) -> Iterator[str]:
    """What is wrong with a tool among the others."""
    places: dict[str, str] = {}
    for tool in tools:
        name, line = tool["spec"]["name"], tool["line"]
        if name in IN_HOUSE.keys() | INDIRECT or name in places:
            by = places.get(name, "a tool of dualtrack")
            yield f"{line}: tool {name!r}: the name is taken by {by}: write another name"
        places.setdefault(name, line)
        if tool["seconds"] and tool["seconds"] > own.seconds:
            yield (
                f"{line}: tool {name!r}: it may take {tool['seconds']:g} s, but its function {own.seconds} s: write less,"
                " or more as seconds in [tools] of dualtrack.toml"
            )
    if len(tools) > MAX_TOOLS:
        yield f"{tools[MAX_TOOLS]['line']}: there are {len(tools):,} tools: a request takes at most {MAX_TOOLS}"


def noted(imported: Iterable[ModuleReport]) -> Iterator[str]:
    """What is worth a word of modules that are right."""
    has_tool = False
    for module in imported:
        path, seconds = module["path"], module["seconds"]
        has_tool = has_tool or bool(module["tools"])
        for tool in module["tools"]:
            if tool["note"]:
                yield f"{tool['line']}: tool {tool['spec']['name']!r}: {tool['note']}"
        if module["printed"]:
            shown = one_line(module["printed"])
            yield f"{path}:1: it prints when it is imported, into the function's log: {shown}"
        if seconds >= HEAVY_SECONDS:
            package, most = max(module["packages"].items(), key=lambda item: item[1], default=("", 0.0))
            of_them = f", {most:.1f} s of them {package}" if most > seconds / 4 else ""
            yield (
                f"{path}:1: importing it takes {seconds:.1f} s here{of_them}, at every cold start of the tools'"
                " function: import within the tool what not every call needs"
            )
    if not has_tool:
        yield f"{TOOLS}:1: no function there is a tool: write @tool above one (from dualtrack import tool)"
