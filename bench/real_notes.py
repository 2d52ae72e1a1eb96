"""What a real model writes as notes in the turn: how many of those asked for, how long, what of its records is kept.

    ANTHROPIC_API_KEY=… uv run --group test python -m bench.real_notes [--model MODEL] [--queries 12]
    uv run --group test python -m bench.real_notes --offline

It needs a real model and stops without a key. ``--offline`` runs it with the built-in model, which only shows that it
runs: that model follows rules. A run of twelve queries costs some cents with Haiku 5.5.

One conversation through the product's own steps: each query asks for the order of one delivery, whose report of 2 KB a
tool returns (`bench.summary_quality` has the reports and what is asked of them). Counted over all queries: notes asked
for and written, their tokens, and of each report with a note whether the note has the order, the remark in passing and
one of 60 details.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dualtrack.models.providers.anthropic.client import connect
from dualtrack.settings import DEFAULTS
from dualtrack.text import estimate_tokens
from dualtrack.tool_values import ToolResult
from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.offline_model.service import Settings
from rich.console import Console
from rich.table import Table

from bench.summary_quality import RECORDS, real_model, records_and_questions
from tests.drivers.invariants import turns_of
from tests.drivers.world import make_world

if TYPE_CHECKING:
    from dualtrack.models.protocol import Model
    from dualtrack.tools.running import Running

    from tests.drivers.world import World

TOOL = "retrieve_documentation"
NO_KEY = "This bench needs a real model: set ANTHROPIC_API_KEY. --offline only shows that the bench runs."


@dataclass
class Written:
    """What was ``asked`` for and written: the tokens of each note; of reports with a note the facts that it has, by
    kind; ``reports``: how many have one."""

    asked: int = 0
    tokens: list[int] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    failed: int = 0
    """Chats that did not end with an answer."""


def measure(model: Model, name: str, queries: int) -> Written:
    """Lead the conversation."""
    # AWS credentials that lead nowhere; it takes the model's key away as well, which `model` has by now
    import tests.conftest  # noqa: F401

    records, questions = records_and_questions(queries)

    def found(running: Running) -> ToolResult:
        return ToolResult(records[running.chat.query - 1].content)

    written = Written()
    with make_world(**{TOOL: found}) as made:
        made.stores.ledger.grant("ann", "g", 100_000, "bench", made.clock())
        world, conversation_id = replace(made, claude=model, model_name=name), ""
        for number, record in enumerate(records, start=1):
            own = [question for question in questions if question.record_id == record.record_id]
            asked = f"Look up the next delivery report with {TOOL}, once. {own[0].text}"
            chat = world.ask(asked, conversation_id=conversation_id)
            conversation_id = chat.conversation_id
            written.failed += chat.status != "done"
            notes = _notes(world, written, chat)
            said = [note for record_id, note in notes.items() if record_id.startswith(f"q{number}-t")]
            written.reports += bool(said)
            written.kept.update(question.kind for question in own if question.word in " ".join(said))
    return written


def _notes(world: World, written: Written, chat: object) -> dict[str, str]:
    """The notes of a chat's turns. Those on results are counted: on its answer the model writes one only if that is
    long."""
    notes: dict[str, str] = {}
    for turn in turns_of(world.stores, chat):  # type: ignore[arg-type]
        written.asked += sum(not each.endswith("-r") for each in turn.sending.asked)
        notes |= turn.notes
    written.tokens += [estimate_tokens(note) for each, note in notes.items() if not each.endswith("-r")]
    return notes


def table_of(written: Written, name: str, queries: int) -> Table:
    """One column of figures."""
    table = Table(title=f"Notes by {name}, {queries} queries")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_row("notes asked for", str(written.asked))
    table.add_row("of these written", f"{len(written.tokens) / max(written.asked, 1):.0%}")
    table.add_row("tokens of a note, mean", f"{sum(written.tokens) / max(len(written.tokens), 1):.0f}")
    table.add_row("longest", str(max(written.tokens, default=0)))
    for kind in ("subject", "in passing", "detail"):
        table.add_row(f"reports whose note has the {kind}", f"{written.kept[kind]} of {written.reports}")
    table.add_row("chats that failed", str(written.failed))
    return table


def main() -> int:
    """Print the table; exit code 2 without a key."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default=DEFAULTS.dualtrack_model)
    parser.add_argument("--queries", type=int, default=RECORDS)
    parser.add_argument("--offline", action="store_true")
    chosen, console = parser.parse_args(), Console(width=100)
    if chosen.offline:
        with serve_offline_model(settings=Settings(chunk_delay=0)) as offline:
            looks_up = {"type": "tool_use", "name": TOOL, "input": {"query": "the next report"}}
            for _ in range(chosen.queries):
                offline.script.add(
                    {"match": "turn", "content": [looks_up]},
                    {"match": "turn", "text": "It stands in the report.", "notes": True},
                )
            written = measure(connect(offline.url, "key"), chosen.model, chosen.queries)
        console.print(table_of(written, "the built-in model, which follows rules", chosen.queries))
        return 0
    model = real_model()
    if model is None:
        console.print(NO_KEY)
        return 2
    console.print(table_of(measure(model, chosen.model, chosen.queries), chosen.model, chosen.queries))
    return 0


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    sys.exit(main())
