"""The documents and their commands, the files of the project, and a shell that runs the commands on a copy of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
EARLIER_RELEASES: Final = ROOT / "tests" / "fixtures"
"""Their files name documents and sections as they were then."""

FENCED: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
_SHELL: Final = frozenset({"sh", "bash"})
_UV_OPTIONS: Final = re.compile(r"\buv run(?: --(?:extra|group|with) \S+)+")
_INLINE: Final = re.compile(r"`([^`\n]+)`")


def shell_blocks(text: str) -> Iterator[str]:
    """The blocks of a document that its reader may copy into a shell, in order."""
    for block in FENCED.finditer(text):
        if block["language"] in _SHELL:
            yield re.sub(rf"^{block['indent']}", "", block["text"], flags=re.MULTILINE)


def inline_code(text: str) -> list[str]:
    """What a document has as code in its lines."""
    return _INLINE.findall(FENCED.sub("", text))


def commands(text: str, program: str) -> Iterator[str]:
    """What follows ``program`` wherever a document has it as code: in a block or in a line."""
    blocks = "\n".join(block["text"].replace("\\\n", " ") for block in FENCED.finditer(text))
    inline = "\n".join(inline_code(text))
    for line in without_uv_options(f"{blocks}\n{inline}").splitlines():
        for part in line.split(program)[1:]:
            yield re.split(r"\s#|[|;&<>)]", part)[0].strip()


def without_uv_options(text: str) -> str:
    """``uv run pytest`` for ``uv run --group test pytest``: which packages a command needs does not matter here."""
    return _UV_OPTIONS.sub("uv run", text)


@dataclass(frozen=True, slots=True)
class Copy:
    """The project as a newcomer has it: its files alone, without state. ``port`` is in place of 8000."""

    folder: Path
    port: int

    def run(self, blocks: Iterable[str]) -> subprocess.CompletedProcess[str]:
        """The blocks in one shell, until one fails; its errors are with its output."""
        script = "\n".join(f"echo '$ block {number}'\n{block}" for number, block in enumerate(blocks, 1))
        script = script.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
        script = script.replace("dualtrack dev", f"dualtrack dev --port {self.port}")
        return subprocess.run(
            [
                "bash",
                "-e",
                "-o",
                "pipefail",
                "-c",
                f"trap 'kill $(jobs -p) 2>/dev/null || true; wait; uv run dualtrack stop' EXIT\n{script}",
            ],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=580,
            check=False,
        )

    def _environment(self) -> dict[str, str]:
        """This test's own environment of packages, and the copy's modules before those of the checkout."""
        modules = (self.folder, self.folder / "infra", self.folder / "layers" / "core" / "python")
        return {
            **os.environ,
            "PATH": f"{self.folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, modules)),
            "UV_PROJECT_ENVIRONMENT": sys.prefix,
            "UV_NO_SYNC": "1",
            "UV_OFFLINE": "1",
            "NO_PROXY": "127.0.0.1",
            "DUALTRACK_IDLE_SECONDS": "60",
        }


def project_files(*patterns: str) -> list[Path]:
    """The files of the project, those that are not committed yet included; ``patterns`` as `git ls-files` has them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # a file that was deleted is listed until its deletion is committed
    return [path for name in filter(None, listed.split("\0")) if (path := ROOT / name).is_file()]


def copy_project(folder: Path) -> None:
    """What a clone of the project would have, but the fixtures of earlier releases."""
    for path in project_files():
        if not path.is_relative_to(EARLIER_RELEASES):
            copied = folder / path.relative_to(ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied)


def copied_to(folder: Path, port: int) -> Copy:
    """A copy of the project. What was built is shared; ``pip install uv`` is taken as done."""
    project, programs = folder / "dualtrack", folder / "bin"
    copy_project(project)
    (ROOT / ".build").mkdir(exist_ok=True)
    (project / ".build").symlink_to((ROOT / ".build").resolve())
    programs.mkdir()
    (programs / "pip").write_text('#!/bin/sh\n[ "$*" = "install uv" ]\n')
    (programs / "pip").chmod(0o755)
    return Copy(project, port)
