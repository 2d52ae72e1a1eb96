"""What notes in the turn cost and bring if the model does not write them as it is asked.

    uv run --group test python -m bench.note_writers [--queries 20] [--kind NAME] [--writer NAME …]

One conversation of `bench.memory_kinds` for each writer (`bench.note_writers.writers`), with the same queries, results
and answers. Counted: the cost of all calls against a full history that is cached; of the records over 1,000 characters
those that stand as a note, as an extract and whole; the answers of which a word was lost, and those in which a line
stands that was meant as a note.
"""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

from bench.memory_kinds import KINDS, WINDOW, conversation, dual_track, totals
from bench.note_writers.writers import WRITERS, WritingScript
from bench.other_memories import Exchange, Service, full_history
from tests.drivers.memory_scenarios import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.drivers.world import World

KIND: Final = "4 results of 1,001–2,000, answers 1,500"
LONG: Final = 1_000
SHOWN: Final = ("note", "extract", "whole")


class Seen:
    """What the records of a conversation say at its end."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = exchanges
        self.forms: Counter[str] = Counter()
        self.lost = self.longer = 0

    def __call__(self, world: World, conversation_id: str) -> None:
        """Look at each query's records and track."""
        history = world.stores.history
        for track in history.tracks("ann", conversation_id, len(self._exchanges)):
            records = {
                each.record_id: each for each in history.query_records("ann", conversation_id, track.query)
            }
            forms = {block.ref or block.record_id: block.form for block in track.blocks}
            for record_id, record in records.items():
                if len(record.content) > LONG and record_id in forms:
                    self.forms[forms[record_id]] += 1
            said, meant = records[f"q{track.query}-r"].content, self._exchanges[track.query - 1].answer
            self.lost += not _bare(said).startswith(_bare(meant))
            self.longer += len(_bare(said)) > len(_bare(meant))


def _bare(text: str) -> str:
    return "".join(text.split())


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--kind", choices=list(KINDS), default=KIND)
    parser.add_argument("--writer", choices=list(WRITERS), nargs="*", default=list(WRITERS))
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    exchanges = conversation(chosen.kind, chosen.queries)
    table = Table(title=f"{chosen.kind}, {chosen.queries} queries")
    for heading in ("", "cost", *SHOWN, "words lost", "with a line of notes"):
        table.add_column(heading, justify="right" if heading else "left")
    for writer in chosen.writer:
        seen = Seen(exchanges)
        ours, first = dual_track(exchanges, "in_turn", 0.0, Progress(writer), WritingScript(writer), seen)
        full = totals(full_history(Service(first, WINDOW, 0.0), exchanges))[-1]
        shares = (f"{seen.forms[form] / max(seen.forms.total(), 1):.0%}" for form in SHOWN)
        table.add_row(
            writer, f"{totals(ours)[-1] / full - 1:+.1%}", *shares, str(seen.lost), str(seen.longer)
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
