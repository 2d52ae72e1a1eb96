"""What is installed, and how long a fresh clone takes to its first answer, beside an earlier commit.

    uv run --group test python -m bench.install 6bdf567 --rounds 3

Sizes are `du -sm` of new environments, before anything ran in them. A first answer is ``git clone``, then the README's
command in the clone, with what uv needs in its cache; the rounds of both commits alternate, so that the machine's other
work affects both. The figures of a round on a loaded machine say little: compare the rows, and the least of each.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import click
from dualtrack_stack.local.runner import KEEPER_FILE, is_locked
from rich.console import Console
from rich.table import Table

from tests.clients.stack_client import wait_for
from tests.drivers.documents import ROOT
from tests.drivers.installs import Installed, synced

INSTALLS: Final = {
    "`--no-default-groups`: a client": ("--no-default-groups",),
    "(default)": (),
    "`--group test`": ("--group", "test"),
    "`--all-groups`": ("--all-groups",),
}
QUESTION: Final = "How do I set up OAuth for Twitter ads?"


def clone(commit: str, folder: Path) -> Path:
    """A fresh clone of the repository at a commit."""
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=folder, check=True)
    return folder


def seconds_to_answer(commit: str, folder: Path) -> tuple[float, Installed]:
    """From ``git clone`` to the end of the first chat; and the environment that this made."""
    began = time.monotonic()
    project = clone(commit, folder)
    hidden = {"VIRTUAL_ENV", "UV_NO_SYNC", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment["DUALTRACK_IDLE_SECONDS"] = "0"
    command = ["uv", "run", "--quiet", "dualtrack", "chat", QUESTION]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
    seconds = time.monotonic() - began
    wait_for(lambda: not is_locked(project / ".dualtrack" / KEEPER_FILE))
    return seconds, Installed(project / ".venv")


def sizes(commit: str, folder: Path) -> Table:
    """Packages and MB of each install of a commit."""
    project = clone(commit, folder / "project")
    table = Table("uv sync", "packages", "MB", "s", title=f"Installs of {commit}")
    for number, (name, options) in enumerate(INSTALLS.items()):
        began = time.monotonic()
        made = synced(folder / str(number), *options, project=project)
        seconds = time.monotonic() - began
        table.add_row(name, str(len(made.packages)), str(made.megabytes), f"{seconds:.1f}")
    return table


@click.command()
@click.argument("earlier")
@click.option("--rounds", default=3, show_default=True)
def main(earlier: str, rounds: int) -> None:
    """Print both tables, for HEAD and for the commit EARLIER."""
    console = Console(width=100)
    answers: dict[str, list[float]] = {earlier: [], "HEAD": []}
    used: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for commit in answers:
            console.print(sizes(commit, Path(scratch) / f"sizes-{commit}"))
        for number in range(rounds):
            for commit, seconds in answers.items():
                taken, made = seconds_to_answer(commit, Path(scratch) / f"{commit}-{number}")
                seconds.append(taken)
                used[commit] = made.megabytes
                console.print(f"round {number + 1}, {commit}: {taken:.1f} s")
    table = Table("commit", "s, each round", "least", "MB afterwards", title="First answer of a fresh clone")
    for commit, seconds in answers.items():
        each = ", ".join(f"{taken:.1f}" for taken in seconds)
        table.add_row(commit, each, f"{min(seconds):.1f}", str(used[commit]))
    console.print(table)


if __name__ == "__main__":
    main()
