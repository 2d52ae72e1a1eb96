"""What a move of code must leave as it is, written down as files that two checkouts can be compared by.

    uv run --group test python -m tests.drivers.referees FOLDER     # in each checkout, then: diff -r ONE OTHER

``openapi.json``; the stages' templates without their assets' hashes; ``tools.json``; ``help.txt``, of every command;
``stored.txt``, how each stored class is written; ``loaded.txt``, the lines of the library that each function has loaded
when its handler is imported, which a move changes and a good one lowers (`bench.imports` has the time).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.testing import CliRunner
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.codec import encode
from dualtrack.tools.registry import library_tools
from dualtrack_stack.cli.main import main as terminal
from dualtrack_stack.roots import LIBRARY

from bench.imports import ENVIRONMENT, code_of
from tests.drivers.stored_classes import library_classes
from tests.drivers.synthesised import AWS_STAGES, synthesised
from tests.drivers.zygote import HANDLERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_HASH: Final = re.compile(r"[0-9a-f]{64}|(?<=CurrentVersion)[0-9A-F]{8}[0-9a-f]{32}|(?<=-)[0-9a-f]{16}\b")
"""Names that follow from the content of code: of assets, of versions of functions."""

_LINES: Final = """
import sys
loaded = [module.__file__ for name, module in list(sys.modules.items()) if name.split(".")[0] == "dualtrack"]
print(sum(open(file, encoding="utf-8").read().count("\\n") for file in loaded if file))
"""


def main(folder: str) -> None:
    """Write all of them into a folder."""
    for name, text in _texts():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _texts() -> Iterator[tuple[str, str]]:
    yield "openapi.json", _json(openapi_document(ROUTES))
    yield "tools.json", _json(library_tools())
    yield "help.txt", "\n".join(_helps(terminal, ("dualtrack",)))
    yield "stored.txt", "\n".join(_forms())
    yield "loaded.txt", "".join(f"{name} {_lines(name)}\n" for name in HANDLERS)
    for stage in ("local", *AWS_STAGES):
        for template in sorted(synthesised(stage).glob("*.template.json")):
            body = json.loads(template.read_text(encoding="utf-8"))
            yield f"{stage}/{template.name}", _HASH.sub("HASH", _json(body))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _helps(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    yield CliRunner().invoke(command, ["--help"], prog_name=" ".join(path)).output
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _helps(command.commands[name], (*path, name))


def _forms() -> Iterator[str]:
    """Each class by its own name, without its module's, and each field: name, type, default."""
    for kind in sorted(library_classes(), key=lambda kind: kind.__name__):
        yield kind.__name__
        for field in kind.__dataclass_fields__.values():  # type: ignore[attr-defined]
            yield f"  {field.name}: {field.type} {_default(field)}"


def _default(field: Any) -> str:
    try:
        return json.dumps(encode(field.default))
    except TypeError:
        return "made" if callable(field.default_factory) else ""


def _lines(handler: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path[:0] = [{str(LIBRARY.parent)!r}]\n{code_of(handler)}\n{_LINES}"],
        env=ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main(*sys.argv[1:])
