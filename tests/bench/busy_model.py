"""What a model costs that is busy for minutes: ``uv run python -m tests.bench.busy_model [CHATS] [SEED]``.

Chats through their real steps in time that is a value (tests/drivers/busy_storm.py), once with a workflow that waits
and once with the one of release 1. 300 chats unless told otherwise. Exit code 1 if an invariant is broken, or if a
chat fails that has time.
"""

from __future__ import annotations

import logging
import sys

from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.busy_storm import BusyStorm, busy_storm

MINUTES = (0, 0.25, 2, 5, 9, 10.5, 12)
IN_TIME = 10
"""So many minutes of trouble leave every chat some time."""


def main(chats: int, seed: int) -> int:
    """Run and print."""
    logging.disable(logging.WARNING)
    table = Table(
        title=f"{chats} chats of one round of tools, asked in one minute, seed {seed}; figures a chat"
    )
    for heading in (
        "busy", "workflow", "done", "failed", "credits", "model calls", "states", "paid s", "calls in 1 s", "longest s"
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    broken: list[str] = []
    for minutes in MINUTES:
        for waits in (False, True):
            found = busy_storm(chats, minutes, waits=waits, seed=seed)
            table.add_row(f"{minutes} min", "waits" if waits else "release 1", *_figures(found))
            broken += found.wrong
            if waits and minutes <= IN_TIME and found.ended["done"] < chats:
                broken.append(f"{minutes} minutes: {found.ended}")
    Console(width=140).print(table)
    print(*broken, sep="\n")
    return 1 if broken else 0


def _figures(found: BusyStorm) -> tuple[str, ...]:
    def each(amount: float) -> str:
        return f"{amount / found.chats:.1f}"

    return (
        str(found.ended["done"]),
        str(found.ended["failed"]),
        each(found.charged),
        each(found.calls),
        each(found.states),
        each(found.paid_seconds),
        str(found.at_once),
        f"{found.seconds:.0f}",
    )


if __name__ == "__main__":
    asked = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(asked[0] if asked else 300, asked[1] if len(asked) > 1 else 1))
