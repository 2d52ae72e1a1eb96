"""A follow-up sent at the moment of the answer, while the previous query's summaries are still being written.

    uv run --group test python -m bench.follow_up [--seconds 0 2 4 8] [--times 5] [--port PORT]

Runs on the local stack. Each conversation has three queries: one with two tools; one sent at the ``answer`` event of
the first; one sent when nothing is pending. Measures the time from the POST to the arrival of the model call for the
last two, and whether the second and the third keep the prefix of the query before them. A conversation takes about 15
seconds and three times the delays.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.long_memory import keeps_prefix, prose, query_starts, running_lab
from tests.drivers.memory_scenarios import Progress

if TYPE_CHECKING:
    from tests.drivers.long_memory import Lab, Talk

RESULT: Final = 12_000
ANSWER: Final = 2_500


@dataclass
class Timed:
    """Conversations with one duration of summaries: seconds to the model, and whether prefixes were kept."""

    at_once: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    kept_after: list[bool] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def measure(lab: Lab, seconds: float, times: int) -> Timed:
    """Run the conversations, with a first one only to start the functions' processes."""
    timed = Timed()
    tell = Progress(f"summaries of {seconds:g} s")
    lab.model.summary_seconds = seconds
    for number in range(times + 1):
        talk = lab.talk(f"follower-{seconds:g}-{number}")
        first = talk.start(
            "What is there?", [[prose(f"a {number}", RESULT), prose(f"b {number}", RESULT)]], _answer(0)
        )
        talk.person.until(first, lambda event: event.kind == "answer")
        asked_at, second = time.monotonic(), talk.start("And then?", answer=_answer(1))
        talk.finish(first)
        talk.finish(second)
        later_at = time.monotonic()
        talk.ask("Anything else?", answer=_answer(2))
        if number:
            _note(timed, lab, talk, asked_at, later_at)
        tell(f"{number} of {times} conversations")
    return timed


def _answer(number: int) -> str:
    return prose(f"answer {number}", ANSWER)


def _note(timed: Timed, lab: Lab, talk: Talk, asked_at: float, later_at: float) -> None:
    first, second, third = query_starts(lab.model.calls, talk.marker)
    timed.at_once.append(second.at - asked_at)
    timed.later.append(third.at - later_at)
    timed.kept.append(keeps_prefix(first, second))
    timed.kept_after.append(keeps_prefix(second, third))
    timed.wrong += talk.wrong()


def print_table(console: Console, measured: dict[float, Timed], times: int) -> None:
    """A row for each length of the summaries."""
    table = Table(title=f"A follow-up at the answer, {times} conversations each")
    for heading in ("summaries take", "to the model: median", "longest", "if sent later: median", "longest"):
        table.add_column(heading, justify="right")
    for heading in ("prefix kept", "and by the query after it", "wrong"):
        table.add_column(heading, justify="right")
    for seconds, timed in measured.items():
        spans = [f"{figure:.2f} s" for span in (timed.at_once, timed.later) for figure in _spread(span)]
        kept = [f"{sum(held)} of {len(held)}" for held in (timed.kept, timed.kept_after)]
        table.add_row(f"{seconds:g} s", *spans, *kept, str(len(timed.wrong)))
    console.print(table)
    for timed in measured.values():
        console.print(*timed.wrong[:5], sep="\n")


def _spread(values: list[float]) -> tuple[float, float]:
    return statistics.median(values), max(values)


def main() -> int:
    """Run and print; returns 1 if a prefix was broken or a record is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", nargs="*", type=float, default=[0.0, 2.0, 4.0, 8.0])
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder, running_lab(Path(folder), {}, port=chosen.port) as lab:
        measured = {seconds: measure(lab, seconds, chosen.times) for seconds in chosen.seconds}
    print_table(Console(width=150), measured, chosen.times)
    return int(any(timed.wrong or not all((*timed.kept, *timed.kept_after)) for timed in measured.values()))


if __name__ == "__main__":
    sys.exit(main())
