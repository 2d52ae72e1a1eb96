"""Very long conversations through the local stack, with a strict model with a window of 200,000 tokens.

    uv run --group test python -m bench.long_memory [--scale 1.0] [--only NAME …] [--port PORT] [--state-dir DIR]

400 queries of 32,000 characters; 1,000 ordinary ones; 15 turns with two results of 100,000 characters each; 20 such
results in one turn; 8 images of 4 MB together. Every chat must end ``done`` with its answer, every record be returned
byte for byte by its id, and the largest request stay within the profile's budget, measured at the model: as the service
counts it, and in cautious tokens in a query's first call. About ten minutes; ``--scale 0.05`` for a quick look. Exit
code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.profiles import DEFAULT_PROFILE, profile_named
from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.long_memory import reads_of_steps, running_lab
from tests.drivers.memory_scenarios import SCENARIOS, Progress, Sizes, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.drivers.long_memory import Lab, Reads
    from tests.drivers.memory_scenarios import Outcome

MODEL: Final = "claude-haiku-4-5-20251001"
"""Its window has 200,000 tokens, and the offline model refuses what is larger."""


def measure(
    lab: Lab, names: Sequence[str], sizes: Sizes
) -> tuple[list[Outcome], dict[int, dict[str, Reads]]]:
    """Run every scenario; also what a query's steps read after 10, 100, 1,000 … ordinary queries."""
    profile = profile_named(DEFAULT_PROFILE)
    room = profile.context_tokens - profile.max_tokens
    outcomes: list[Outcome] = []
    reads: dict[int, dict[str, Reads]] = {}
    for name in names:
        talk = lab.talk(name.replace(" ", "-"))
        outcomes.append(run(name, talk, sizes, lambda: lab.model.calls, room, Progress(name)))
        if name == "ordinary queries":
            short = lab.talk("short")
            run(name, short, replace(sizes, ordinary=10), lambda: lab.model.calls, room, Progress(name))
            reads = {len(measured.chats): reads_of_steps(lab, measured, MODEL) for measured in (short, talk)}
    return outcomes, reads


def print_outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """A row for each scenario."""
    table = Table(title=f"Against a window of 200,000 tokens ({MODEL})")
    for heading in (
        "",
        "chats",
        "s",
        "s first",
        "s last",
        "calls",
        "records",
        "at first",
        "cautious",
        "counted",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    for heading in ("MB", "files", "folds", "again", "wrong"):
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        wire, again = outcome.wire, outcome.resent
        figures = (
            outcome.chats,
            f"{outcome.seconds:.0f}",
            f"{outcome.early:.2f}",
            f"{outcome.late:.2f}",
            wire.calls,
            outcome.records,
        )
        largest = (
            f"{wire.first:,}",
            f"{wire.cautious:,}",
            f"{wire.counted:,}",
            f"{wire.size / 1e6:.1f}",
            wire.media,
        )
        table.add_row(
            outcome.name, *map(str, (*figures, *largest, again.folds, again.between, len(outcome.wrong)))
        )
    console.print(table)
    console.print(
        "s first, s last: a chat, mean of the first and of the last tenth · of the largest request's input: tokens by "
        "the cautious estimate in a query's first call and in any, tokens as the service counts them, size, files · "
        "again: tokens sent again outside the unchanged prefix between folds"
    )
    for outcome in outcomes:
        for wrong in outcome.wrong[:10]:
            console.print(f"[red]{outcome.name}: {wrong}")


def print_reads(console: Console, reads: Mapping[int, Mapping[str, Reads]]) -> None:
    """What a query's steps read."""
    table = Table(title="DynamoDB items (requests) that one more query reads")
    table.add_column("after", justify="right")
    for step in next(iter(reads.values())):
        table.add_column(step, justify="right")
    for queries, steps in reads.items():
        table.add_row(f"{queries} queries", *[f"{read.items} ({read.requests})" for read in steps.values()])
    console.print(table)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of queries")
    parser.add_argument("--only", nargs="*", choices=list(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--state-dir", type=Path)
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    sizes = Sizes()
    sizes = replace(
        sizes,
        long_queries=max(round(sizes.long_queries * chosen.scale), 2),
        ordinary=max(round(sizes.ordinary * chosen.scale), 2),
    )
    with tempfile.TemporaryDirectory() as folder:
        state_dir = chosen.state_dir or Path(folder)
        with running_lab(state_dir, {"DUALTRACK_MODEL": MODEL}, port=chosen.port) as lab:
            outcomes, reads = measure(lab, chosen.only, sizes)
    console = Console(width=150)
    print_outcomes(console, outcomes)
    if reads:
        print_reads(console, reads)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
