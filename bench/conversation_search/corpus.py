"""Conversations whose questions were labelled before any run: dialogues between documentation results.

`dialogues.json` has exchanges written for this bench, each with questions and the records that answer them. They are
spread over four long conversations, whose other queries read a library's documentation, section by section
(`bench.retrieval.corpus`), and the questions about these are those of that bench with its labels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.events import turn_begins
from dualtrack.frozen import freeze
from dualtrack.memory.query_index import index_of
from dualtrack.memory.records import Record, ToolCallDetail
from dualtrack.memory.summaries import track_of
from dualtrack.profiles import History
from dualtrack.requests import ChatRef
from dualtrack.storage.conversations import Conversation

from bench.retrieval.corpus import PACKAGES, QUESTIONS, load
from tests.drivers.world import store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.storage.stores import Stores

    from bench.retrieval.corpus import Corpus

DIALOGUES: Final = Path(__file__).with_name("dialogues.json")
WHOLE: Final = History().whole_characters
AT: Final = "2026-11-22T00:00:00.000Z"
USER: Final = "ann"
RESULTS: Final = 4
"""Sections that one query of a conversation reads."""
KEPT: Final = 4
"""Every fourth section is in the conversation, and each labelled one."""


@dataclass(frozen=True)
class Talk:
    """One conversation: its queries, and its questions (text, ids of the answers, origin)."""

    conversation_id: str
    queries: list[tuple[Record, ...]] = field(default_factory=list)
    questions: list[tuple[str, frozenset[str], str]] = field(default_factory=list)

    @property
    def chat_id(self) -> str:
        """The chat that searches and that the conversation is locked by."""
        return f"ch_{self.conversation_id[3:]}"

    def add(self, query: str, results: Sequence[tuple[str, Mapping[str, Any], str]], response: str) -> int:
        """Append a query with its tool results and response; returns its number."""
        number = len(self.queries) + 1
        tools = (
            Record(
                f"q{number}-t{position}",
                "tool_call",
                "user",
                text,
                AT,
                1,
                call=ToolCallDetail(f"toolu_{position}", tool, freeze(arguments), False, 1.0, 1),
            )
            for position, (tool, arguments, text) in enumerate(results, start=1)
        )
        asked = Record(f"q{number}", "message", "user", query, AT, chat_id="ch_earlier")
        said = Record(f"q{number}-r", "message", "assistant", response, AT, 2, stop="complete")
        self.queries.append((asked, *tools, said))
        return number


def talks() -> Iterator[Talk]:
    """The four conversations."""
    dialogues = json.loads(DIALOGUES.read_text())
    labelled = json.loads(QUESTIONS.read_text())
    for index, package in enumerate(PACKAGES):
        asked = [question for question in labelled if question["library"] == package.name]
        yield _talk(index, load(package), asked, dialogues[index :: len(PACKAGES)])


def _talk(index: int, corpus: Corpus, asked: Sequence[Any], dialogues: Sequence[Any]) -> Talk:
    talk = Talk(f"cv_{index:026d}")
    wanted = {name for question in asked for name in question["relevant"]}
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
    for extra in rest:
        _add_dialogue(talk, extra)
    for extra in asked:
        answers = frozenset(record_id for name in extra["relevant"] for record_id in ids[name])
        talk.questions.append((extra["question"], answers, "documentation"))
    return talk


def _add_dialogue(talk: Talk, dialogue: Any) -> None:
    if dialogue is None:
        return
    results = [(tool["tool"], tool["input"], tool["result"]) for tool in dialogue["tools"]]
    number = talk.add(dialogue["query"], results, dialogue["response"])
    for ask in dialogue["asks"]:
        answers = frozenset(f"q{number}" if name == "q" else f"q{number}-{name}" for name in ask["records"])
        talk.questions.append((ask["question"], answers, "dialogues"))


def put(stores: Stores, talk: Talk, *, indexed: bool = True) -> None:
    """Store it as the product does, with the summaries that need no model, locked by the next query's chat."""
    log = stores.log(ChatRef(USER, talk.chat_id, talk.conversation_id))
    log.begin()
    log.append([turn_begins(1, 10, final=False)])
    number = len(talk.queries) + 1
    held = {"lease": talk.chat_id, "lease_until": 2_000_000_000}
    stores.conversations.create(
        Conversation(USER, talk.conversation_id, "Talk", "assistant", AT, AT, AT, number, **held)  # type: ignore[arg-type]
    )
    for query, records in enumerate(talk.queries, start=1):
        for record in records:
            store(stores, stores.history.record_writes(USER, talk.conversation_id, record))
        track = track_of(records, {}, WHOLE, AT)
        store(stores, stores.history.track_writes(USER, talk.conversation_id, track))
        if indexed:
            index_query(stores, talk, query, records)


def index_query(stores: Stores, talk: Talk, query: int, records: Sequence[Record]) -> None:
    """What the step that ends a query writes for the search."""
    index = index_of(records, track_of(tuple(records), {}, WHOLE, AT))
    store(stores, stores.search_index.words_writes(USER, talk.conversation_id, {query: index}))
