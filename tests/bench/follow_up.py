"""A follow-up that is sent the moment the answer is there, while the summaries of the query before it take their time.

    uv run python -m tests.bench.follow_up [--seconds 0 2 4 8] [--times 5] [--port PORT]

Through the local stack. Each conversation has three queries: one with two tools; one at the ``answer`` event of the
first; one when everything is over. Measured from the POST to the arrival of its model call at the model, beside a
query that is sent when nothing is pending; and whether the second and the third begin with all that stood before them.
About 15 seconds and three times the delays a conversation.
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
    """Conversations with summaries that take so long: seconds to the model, and whether prefixes were kept."""

    at_once: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    kept_after: list[bool] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def measure(lab: Lab, seconds: float, times: int) -> Timed:
    """So many conversations, the first one only to start the functions' processes."""
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
    one, two, three = query_starts(lab.model.calls, talk.marker)
    timed.at_once.append(two.at - asked_at)
    timed.later.append(three.at - later_at)
    timed.kept.append(keeps_prefix(one, two))
    timed.kept_after.append(keeps_prefix(two, three))
    timed.wrong += talk.wrong()


def print_table(console: Console, measured: dict[float, Timed], times: int) -> None:
    """A row for each length of the summaries."""
    table = Table(title=f"A follow-up at the answer, {times} conversations each")
    for heading in ("summaries take", "to the model: median", "longest", "if sent later: median", "longest"):
        table.add_column(heading, justify="right")
    for heading in ("prefix kept", "and by the query after it", "wrong"):
        table.add_column(heading, justify="right")
    for seconds, one in measured.items():
        spans = [f"{figure:.2f} s" for span in (one.at_once, one.later) for figure in _spread(span)]
        kept = [f"{sum(held)} of {len(held)}" for held in (one.kept, one.kept_after)]
        table.add_row(f"{seconds:g} s", *spans, *kept, str(len(one.wrong)))
    console.print(table)
    for one in measured.values():
        console.print(*one.wrong[:5], sep="\n")


def _spread(values: list[float]) -> tuple[float, float]:
    return statistics.median(values), max(values)


def main() -> int:
    """Run and print; 1 if a prefix was broken or a record is wrong."""
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
    return int(any(one.wrong or not all((*one.kept, *one.kept_after)) for one in measured.values()))


if __name__ == "__main__":
    sys.exit(main())
