"""Conversations whose questions were labelled before any run: dialogues among results of documentation.

`dialogues.json` holds exchanges that were written for this, each with questions and the records that answer them.
They stand far apart in four long conversations, whose other queries read a library's documentation, section by
section (`tests.bench.retrieval.corpus`), and the questions about these are those of that bench with its labels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.events import turn_begins
from dualtrack.frozen import freeze
from dualtrack.memory.records import Record, ToolCallDetail
from dualtrack.memory.summaries import track_of
from dualtrack.requests import ChatRef
from dualtrack.storage.conversations import Conversation

from tests.bench.retrieval.corpus import PACKAGES, QUESTIONS, load
from tests.drivers.world import store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.storage.stores import Stores

    from tests.bench.retrieval.corpus import Corpus

DIALOGUES: Final = Path(__file__).with_name("dialogues.json")
AT: Final = "2026-11-22T00:00:00.000Z"
USER: Final = "ann"
RESULTS: Final = 4
"""Sections that one query of a conversation reads."""
KEPT: Final = 4
"""Every fourth section stands in the conversation, and each that is labelled."""


@dataclass(frozen=True)
class Talk:
    """One conversation as its queries, and its questions: text, the ids that answer it, and where it comes from."""

    conversation_id: str
    queries: list[tuple[Record, ...]] = field(default_factory=list)
    questions: list[tuple[str, frozenset[str], str]] = field(default_factory=list)

    @property
    def chat_id(self) -> str:
        """The chat that searches, and holds the conversation."""
        return f"ch_{self.conversation_id[3:]}"

    def add(self, query: str, results: Sequence[tuple[str, Mapping[str, Any], str]], response: str) -> int:
        """Append a query with its tool results and response; its number."""
        number = len(self.queries) + 1
        tools = (
            Record(
                f"q{number}-t{place}",
                "tool_call",
                "user",
                text,
                AT,
                1,
                call=ToolCallDetail(f"toolu_{place}", tool, freeze(given), False, 1.0, 1),
            )
            for place, (tool, given, text) in enumerate(results, start=1)
        )
        asked = Record(f"q{number}", "message", "user", query, AT, chat_id="ch_earlier")
        said = Record(f"q{number}-r", "message", "assistant", response, AT, 2, stop="complete")
        self.queries.append((asked, *tools, said))
        return number


def talks() -> Iterator[Talk]:
    """The four conversations."""
    dialogues = json.loads(DIALOGUES.read_text())
    labelled = json.loads(QUESTIONS.read_text())
    for place, package in enumerate(PACKAGES):
        asked = [one for one in labelled if one["library"] == package.name]
        yield _talk(place, load(package), asked, dialogues[place :: len(PACKAGES)])


def _talk(place: int, corpus: Corpus, asked: Sequence[Any], dialogues: Sequence[Any]) -> Talk:
    talk = Talk(f"cv_{place:026d}")
    wanted = {name for one in asked for name in one["relevant"]}
    sections = [
        (name, chunk.searchable)
        for position, (name, chunk) in enumerate(zip(corpus.names, corpus.chunks, strict=True))
        if position % KEPT == 0 or name in wanted
    ]
    ids: dict[str, set[str]] = {}
    rest = iter(dialogues)
    every = max(1, len(sections) // RESULTS // len(dialogues))
    for start in range(0, len(sections), RESULTS):
        some = sections[start : start + RESULTS]
        pages = ", ".join(dict.fromkeys(name.split("#")[0] for name, _ in some))
        results = [("retrieve_documentation", {"query": name.split("#")[0]}, text) for name, text in some]
        number = talk.add(f"Go on with {pages}.", results, "I have read it.")
        for result, (name, _) in enumerate(some, start=1):
            ids.setdefault(name, set()).add(f"q{number}-t{result}")
        if (start // RESULTS) % every == 0:
            _add_dialogue(talk, next(rest, None))
    for one in rest:
        _add_dialogue(talk, one)
    for one in asked:
        answers = frozenset(found for name in one["relevant"] for found in ids[name])
        talk.questions.append((one["question"], answers, "documentation"))
    return talk


def _add_dialogue(talk: Talk, one: Any) -> None:
    if one is None:
        return
    results = [(tool["tool"], tool["input"], tool["result"]) for tool in one["tools"]]
    number = talk.add(one["query"], results, one["response"])
    for ask in one["asks"]:
        answers = frozenset(f"q{number}" if name == "q" else f"q{number}-{name}" for name in ask["records"])
        talk.questions.append((ask["question"], answers, "dialogues"))


def put(stores: Stores, talk: Talk) -> None:
    """Store it as the product does, with the summaries that need no model; the next query's chat holds it."""
    log = stores.log(ChatRef(USER, talk.chat_id, talk.conversation_id))
    log.begin()
    log.append([turn_begins(1, 10, final=False)])
    number = len(talk.queries) + 1
    held = {"lease": talk.chat_id, "lease_until": 2_000_000_000}
    stores.conversations.create(
        Conversation(USER, talk.conversation_id, "Talk", "assistant", AT, AT, number, **held)  # type: ignore[arg-type]
    )
    for records in talk.queries:
        for record in records:
            store(stores, stores.history.record_writes(USER, talk.conversation_id, record))
        track = track_of(records, {}, AT)
        store(stores, stores.history.track_writes(USER, talk.conversation_id, track))
