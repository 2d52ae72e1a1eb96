"""``python -m dualtrack_stack.project.importing ROOT DESCRIPTOR SECONDS``: imports a project's tools, in a process of
its own. So a module that hangs, ends the process or prints hurts nobody, and a changed one is read anew.

Standard input: ``{"modules": [[name, path], …], "prices": [class, …]}``. For each module two lines of JSON go to the
file descriptor: ``{"begins": path}``, then `ModuleReport` with its ``path``. One that takes longer than the seconds
ends the process, with a traceback of the line in standard error.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import importlib
import io
import json
import os
import sys
import time
import traceback
from collections import defaultdict
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypedDict

from dualtrack.text import one_line
from dualtrack.tool_declaration import declared
from dualtrack.tool_signature import ToolDeclarationError

from dualtrack_stack.project.function import TOOLS
from dualtrack_stack.project.imports import SDK
from dualtrack_stack.tool_specs import spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

    from dualtrack.tool_declaration import Declaration

_STDERR: Final = 2
SHOWN: Final = 200
"""Characters that are shown of what a module prints, and of the text of what it raises."""


class ModuleReport(TypedDict):
    """What came of a module. ``tools``: each with its ``spec``, ``line``, ``seconds`` and ``note``, which may be empty;
    ``problem``: why there are none, behind ``file:line: ``; ``packages``: the seconds that the packages which it
    imports took."""

    path: str
    tools: list[dict[str, Any]]
    problem: str
    seconds: float
    packages: dict[str, float]
    printed: str


class PrintedText(io.TextIOBase):
    """Keeps the beginning of what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Takes everything."""
        self.text += text[: SHOWN - len(self.text)]
        return len(text)


class ImportTimes:
    """An ``__import__`` that keeps the seconds of each package that the project's modules import, and in ``there``
    those of the SDK, which the function has imported before them."""

    def __init__(self) -> None:
        self.there = 0.0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._import = builtins.__import__
        self._is_inside = False

    def __call__(self, name: str, *arguments: Any, **options: Any) -> Any:
        """As ``__import__``, whose ``level`` is its fifth argument."""
        is_relative = bool(options.get("level") or any(arguments[3:4]))
        package = name.partition(".")[0]
        if self._is_inside or is_relative or package == TOOLS:
            return self._import(name, *arguments, **options)
        self._is_inside, began = True, time.perf_counter()
        try:
            return self._import(name, *arguments, **options)
        finally:
            self._is_inside = False
            took = time.perf_counter() - began
            if package in SDK:
                self.there += took
            else:
                self.seconds[package] += took


def main(root: Path, descriptor: int, limit: float) -> None:
    """Import the modules, one after the other."""
    wanted = json.load(sys.stdin)
    _offer(root / TOOLS)
    with open(descriptor, "w", encoding="utf-8", closefd=False) as report:
        for name, path in wanted["modules"]:
            _tell(report, {"begins": path})
            faulthandler.dump_traceback_later(limit, exit=True, file=_STDERR)
            imported = _import(root, name, path, wanted["prices"])
            faulthandler.cancel_dump_traceback_later()
            _tell(report, imported)
    os._exit(0)  # no thread and no exit handler of the project's holds it up


def _tell(report: IO[str], message: Mapping[str, Any]) -> None:
    report.write(json.dumps(message) + "\n")
    report.flush()


def _offer(folder: Path) -> None:
    """The folder as a package, and nothing else of the project: in the function there is no more either."""

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG004
            if name != TOOLS:
                return None
            file = folder / "__init__.py"
            if file.is_file():
                return spec_from_file_location(name, file, submodule_search_locations=[str(folder)])
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(folder)]
            return spec

    sys.meta_path.insert(0, Finder)


def _import(root: Path, name: str, path: str, prices: Iterable[str]) -> ModuleReport:
    costs, said = ImportTimes(), PrintedText()
    tools: list[dict[str, Any]] = []
    problem, began = "", time.perf_counter()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            module = _timed(name, costs)
        seconds = time.perf_counter() - began
        tools = [_tool(root, name, tool, prices) for tool in _declared(module, name)]
    except BaseException as error:  # noqa: BLE001 - whatever a project's module raises
        seconds = time.perf_counter() - began
        problem = _problem(error, root, path)
    return ModuleReport(
        path=path,
        tools=tools,
        problem=problem,
        seconds=seconds - costs.there,
        packages=dict(costs.seconds),
        printed=said.text,
    )


def _timed(name: str, costs: ImportTimes) -> ModuleType:
    before = builtins.__import__
    builtins.__import__ = costs
    try:
        return importlib.import_module(name)
    finally:
        builtins.__import__ = before


def _declared(module: ModuleType, name: str) -> Iterator[Declaration]:
    for value in list(vars(module).values()):
        declaration = declared(value)
        if declaration and declaration.function.__module__ == name:
            yield declaration


def _tool(root: Path, module: str, tool: Declaration, prices: Iterable[str]) -> dict[str, Any]:
    """Raises `ToolDeclarationError`."""
    code = tool.function.__code__
    return {
        "spec": spec_of(module, tool, kind="own", prices=tuple(prices)),
        "line": f"{_relative(code.co_filename, root)}:{code.co_firstlineno}",
        "seconds": tool.seconds,
        "note": tool.note,
    }


def _relative(file: str, root: Path) -> str:
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def _problem(error: BaseException, root: Path, path: str) -> str:
    """``file:line: …``: the last line of the project's that was reached."""
    inside = [
        f"{_relative(frame.filename, root)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(root / TOOLS)
    ]
    where = inside[-1] if inside else f"{path}:1"
    if isinstance(error, ToolDeclarationError):
        said = str(error).replace(f"{root}/", "").rstrip(".")
        return f"{where}: {said}" if said.startswith("tool ") else said  # what is no function has no line
    if isinstance(error, SyntaxError):
        file = _relative(error.filename, root) if error.filename else path
        return f"{file}:{error.lineno or 1}: this is no Python: {one_line(error.msg)}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{where}: {_missing(error.name)}"
    if isinstance(error, SystemExit):
        return f"{where}: it ends the process when it is imported: leave that to a function"
    said = _text_of(error)
    return f"{where}: it cannot be imported: {type(error).__name__}{f': {said}' if said else ''}"


def _text_of(error: BaseException) -> str:
    try:
        return one_line(str(error)[:SHOWN])
    except Exception:  # noqa: BLE001 - a class of the project's own
        return ""


def _missing(name: str) -> str:
    package = name.partition(".")[0]
    if package == TOOLS:
        return f"there is no module {name}: write the name of a file in tools/"
    return f"there is no module {name}: run uv add with the name of its package, or write tools.{package} for a file in tools/"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
