"""What a model costs that is busy for minutes: ``uv run --group test python -m bench.busy_model [CHATS] [SEED]``.

Chats through their real steps in time that is a value (tests/drivers/busy_storm.py). 300 chats unless told otherwise.
Exit code 1 if an invariant is broken, or if a chat fails that has time.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.busy_storm import busy_storm

if TYPE_CHECKING:
    from tests.drivers.busy_stack import BusyRun
    from tests.drivers.busy_storm import BusyStorm

MINUTES = (0, 0.25, 2, 5, 9, 10.5, 12)
IN_TIME = 10
"""Minutes of trouble that leave every chat some time."""


def main(chats: int, seed: int) -> int:
    """Run and print."""
    logging.disable(logging.WARNING)
    table = Table(
        title=f"{chats} chats of one round of tools, asked in one minute, seed {seed}; figures a chat"
    )
    for heading in (
        "busy", "done", "failed", "credits", "model calls", "states", "paid s", "calls in 1 s", "longest s"
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    broken: list[str] = []
    for minutes in MINUTES:
        storm = busy_storm(chats, minutes, seed=seed)
        *shared, longest = figures(storm)
        table.add_row(f"{minutes} min", *shared, str(storm.at_once), longest)
        broken += storm.wrong
        if minutes <= IN_TIME and storm.ended["done"] < chats:
            broken.append(f"{minutes} minutes: {storm.ended}")
    Console(width=140).print(table)
    print(*broken, sep="\n")
    return 1 if broken else 0


def figures(run: BusyStorm | BusyRun) -> tuple[str, ...]:
    """Chats done and failed; credits, model calls, states and paid seconds a chat; the longest one's seconds."""

    def each(amount: float) -> str:
        return f"{amount / run.chats:.1f}"

    return (
        str(run.ended["done"]),
        str(run.ended["failed"]),
        each(run.charged),
        each(run.calls),
        each(run.states),
        each(run.paid_seconds),
        f"{run.seconds:.0f}",
    )


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(arguments[0] if arguments else 300, arguments[1] if len(arguments) > 1 else 1))
