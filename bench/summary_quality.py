"""The effect of the length of summaries: share of right answers, records fetched, cost.

    ANTHROPIC_API_KEY=… uv run --group test python -m bench.summary_quality [MODEL]
    uv run --group test python -m bench.summary_quality --offline

It needs a real model and stops without a key. ``--offline`` runs it with the built-in model, which only shows that it
runs: that model follows rules, and its figures say nothing about summaries.

Fixed data: reports of deliveries as tool results, one for each past query, and questions about each: its subject, a
passing remark, and one of its many details. Summaries of every length are written as the product writes them, record by
record. A question is sent as the product sends it, after the summarised track, with ``retrieve_full_context``. An
answer is right if it contains the word from the record.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.memory.blocks import SentResult
from dualtrack.memory.records import QueryTrack, Record, ToolCallDetail, TrackBlock
from dualtrack.memory.summaries import fitted, summary_call, summary_requests, track_of
from dualtrack.memory.view import PastTurn, View, build
from dualtrack.models.prices import dollars
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.models.thinking import Thinking, turn_fields
from dualtrack.models.turn import ToolCall, Usage
from dualtrack.profiles import all_profiles
from dualtrack.settings import DEFAULTS
from dualtrack.tools.registry import IN_HOUSE
from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.offline_model.service import Settings
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.models.protocol import Model
    from dualtrack.models.turn import ModelReply

LENGTHS: Final = (100, 200, 350, 600, 900)
RECORDS: Final = 12
AT: Final = "2026-11-22T00:00:00.000Z"
_SEED: Final = 20_261_122
_TOWNS: Final = (
    "Oslo",
    "Porto",
    "Graz",
    "Cork",
    "Turku",
    "Brno",
    "Gdansk",
    "Lyon",
    "Bergen",
    "Split",
    "Varna",
    "Malmo",
)
_GOODS: Final = (
    "cable",
    "glass",
    "paper",
    "seed",
    "paint",
    "steel",
    "cork",
    "resin",
    "wool",
    "tiles",
    "pumps",
    "lamps",
)
_NO_KEY: Final = (
    "This bench needs a real model: set ANTHROPIC_API_KEY. Without one it cannot measure what the length of "
    "summaries does to answers. --offline only shows that the bench runs."
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one record; a right answer contains ``word``."""

    record_id: str
    kind: str
    text: str
    word: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one length: right answers by kind, records fetched, and the questions' cost."""

    right: dict[str, int]
    asked: dict[str, int]
    fetched: int
    usage: Usage
    dollars: float


def records_and_questions(count: int = RECORDS) -> tuple[tuple[Record, ...], tuple[Question, ...]]:
    """The fixed data: a tool result for each past query."""
    generator = random.Random(_SEED)
    reports = [_report(number, generator) for number in range(1, count + 1)]
    return tuple(record for record, _ in reports), tuple(
        question for _, asked in reports for question in asked
    )


def _report(number: int, generator: random.Random) -> tuple[Record, tuple[Question, ...]]:
    town, goods = _TOWNS[number % len(_TOWNS)], _GOODS[number % len(_GOODS)]
    order, price, driver = (str(generator.randint(10_000, 99_999)) for _ in range(3))
    boxes = {
        f"B{generator.randint(100, 999)}-{index}": f"{generator.randint(1_000, 9_999)} g"
        for index in range(60)
    }
    box = generator.choice(sorted(boxes))
    lines = "\n".join(f"- box {name} weighs {weight}" for name, weight in boxes.items())
    text = (
        f"# Delivery of {goods} to {town}\n\nOrder {order} of {goods} went to {town} and was paid with {price} EUR.\n\n"
        f"## Boxes\n\n{lines}\n\n## Remarks\n\nThe driver had the badge {driver}. The gate was open.\n"
    )
    record_id = f"q{number}-t1"
    call = ToolCallDetail(
        f"toolu_{number}", "delivery_report", MappingProxyType({"town": town}), False, 1.0, 1
    )
    return Record(record_id, "tool_call", "user", text, AT, 1, call=call), (
        Question(record_id, "subject", f"Which order went to {town}? Give its number.", order),
        Question(record_id, "in passing", f"Which badge had the driver of the delivery to {town}?", driver),
        Question(
            record_id,
            "detail",
            f"What does box {box} of the delivery to {town} weigh?",
            boxes[box].split()[0],
        ),
    )


def summed_up(model: Model, name: str, records: Sequence[Record], characters: int) -> tuple[QueryTrack, ...]:
    """The summarised track of all records with summaries of this length."""
    tracks = []
    for number, record in enumerate(records, 1):
        query = Record(f"q{number}", "message", "user", "Get me the next report.", AT)
        response = Record(f"q{number}-r", "message", "assistant", "Here it is.", AT, 2, stop="complete")
        summaries = {
            request.record_id: fitted(
                model.complete(summary_call(request, name, Thinking(), characters), 60)[0], characters
            )
            for request in summary_requests((record,), 0)
        }
        tracks.append(track_of((query, record, response), summaries, 0, AT))
    return tuple(tracks)


def measure(model: Model, name: str, characters: int, count: int = RECORDS) -> Figures:
    """All questions over summaries of one length."""
    records, questions = records_and_questions(count)
    tracks = summed_up(model, name, records, characters)
    whole = {record.record_id: record.content for record in records}
    right, asked = dict.fromkeys(kinds(questions), 0), dict.fromkeys(kinds(questions), 0)
    fetched, usage, cost = 0, Usage(), 0.0
    for question in questions:
        replies = _answered(model, name, tracks, question, whole)
        said = "".join(block["text"] for block in replies[-1].content if block["type"] == "text")
        right[question.kind] += question.word in said.replace(",", "")
        asked[question.kind] += 1
        fetched += len(replies) - 1
        for reply in replies:
            usage += reply.usage
            cost += dollars(name, reply.usage)
    return Figures(right, asked, fetched, usage, cost)


def kinds(questions: Sequence[Question]) -> tuple[str, ...]:
    """The kinds of questions, in order."""
    return tuple(dict.fromkeys(question.kind for question in questions))


def _answered(
    model: Model, name: str, tracks: tuple[QueryTrack, ...], question: Question, whole: dict[str, str]
) -> list[ModelReply]:
    """The replies of the question's model calls: one, or two if records are fetched."""
    view = View(tracks, TrackBlock(f"q{len(tracks) + 1}", "user", question.text, AT))
    first = model.stream(_request(name, view, may_fetch=True), _unseen)
    calls = tuple(
        ToolCall(f"q{len(tracks) + 1}-t{index}", block["id"], block["name"], block["input"])
        for index, block in enumerate(
            (content for content in first.content if content["type"] == "tool_use"), 1
        )
    )
    if not calls:
        return [first]
    results = {call.id: SentResult(whole.get(str(call.input.get("id")), "ID not found.")) for call in calls}
    turned = View(tracks, view.query, turns=(PastTurn(first.content, calls, MappingProxyType(results)),))
    return [first, model.stream(_request(name, turned, may_fetch=False), _unseen)]


def _unseen(text: str) -> None:
    """Ignore streamed text."""


def _request(name: str, view: View, *, may_fetch: bool) -> dict[str, Any]:
    profile = all_profiles()["assistant"]
    tool = {
        "name": IN_HOUSE["retrieve_full_context"].name,
        "description": IN_HOUSE["retrieve_full_context"].description,
        "input_schema": dict(IN_HOUSE["retrieve_full_context"].input_schema),
    }
    choice = {} if may_fetch else {"tool_choice": {"type": "none"}}
    system = [{"type": "text", "text": profile.system, "cache_control": {"type": "ephemeral"}}]
    fields = turn_fields(name, profile.max_tokens, Thinking())
    return {**fields, "system": system, "messages": list(build(view).messages), "tools": [tool], **choice}


def _table(model: Model, name: str) -> Table:
    table = Table(title=f"Answers by the length of summaries ({name})")
    _, questions = records_and_questions()
    for column in ("characters", *kinds(questions), "fetched", "input tokens", "dollars per 1,000 questions"):
        table.add_column(column, justify="right")
    for length in LENGTHS:
        figures = measure(model, name, length)
        cells = [f"{figures.right[kind]} of {figures.asked[kind]}" for kind in figures.right]
        cost = f"{1_000 * figures.dollars / len(questions):.3f}"
        table.add_row(str(length), *cells, str(figures.fetched), f"{figures.usage.prompt_tokens:,}", cost)
    return table


def real_model() -> Model | None:
    """Anthropic's, by the key in the environment; None without one."""
    key = os.environ.get("ANTHROPIC_API_KEY", "")
    address = os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
    return connect(address, key) if key else None


def main() -> int:
    """Print the table; exit code 2 without a key."""
    console = Console(width=130)
    named = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    name = named[0] if named else DEFAULTS.dualtrack_model
    if "--offline" in sys.argv:
        with serve_offline_model(settings=Settings(chunk_delay=0)) as offline:
            console.print(_table(connect(offline.url, "key"), name))
        console.print("The built-in model follows rules: these figures say nothing about summaries.")
        return 0
    model = real_model()
    if model is None:
        console.print(_NO_KEY)
        return 2
    console.print(_table(model, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
