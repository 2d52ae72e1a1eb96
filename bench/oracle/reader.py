"""The model of the bench: it tells what was planted, has summaries written, and later reads what it is sent.

The reader obeys only what is in sight. It answers if the fact stands in the request's bytes. Otherwise it reads the
record that an id line names, or else it searches with the question; then it reads the best record of the search, or
searches after all. Two calls, then it gives up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.knowledge.keywords import words
from dualtrack_stack.local.offline_model.script import ScriptedResponse, kind_of
from dualtrack_stack.local.testing.script import ItemsScript, calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack_stack.local.offline_model import wire
    from dualtrack_stack.local.testing.script import Calls

    from bench.oracle.facts import Exchange, Fact
    from bench.oracle.writers import Writer

READ: Final = "retrieve_documentation"
SEARCH: Final = "search_conversation"
CALLS: Final = 2
_LINE: Final = re.compile(r"\[ID:([^\],]+)(?:, ref:([^\],]+))?[^\]]*\](.*)", re.DOTALL)
_ID: Final = re.compile(r"\bq\d+(?:-[tr]\d*)?\b")
_HIT: Final = re.compile(r"^(q\d+(?:-\w+)?) \(([^)]*)\):? ?(.*)$", re.MULTILINE)
_OFFSET: Final = re.compile(r"offset (\d+)")


@dataclass
class Probe:
    """A question about a fact, and what the reader saw. ``calls``: those it needed, None if two were not enough."""

    fact: Fact
    in_sight: bool = False
    is_named: bool = False
    is_hit: bool = False
    calls: int | None = None
    folded: int = 0
    """The last query behind the digest."""
    made: int = 0
    has_searched: bool = False


class Reader(ItemsScript):
    """Tells an exchange (`tell`), or answers a question (`probe`). ``writer`` writes notes, summaries and digests."""

    def __init__(self, writer: Writer, facts: Mapping[str, Sequence[str]]) -> None:
        super().__init__(())
        self._writer, self._facts = writer, facts
        self.probe: Probe | None = None

    def tell(self, number: int, exchange: Exchange) -> None:
        """The items of the next query: it reads its results, and answers."""
        asked = tuple(calls(READ, query=f"{number}.{place}") for place in range(len(exchange.results)))
        self._items = [asked, (exchange.answer,)]

    def take(self, request: wire.Request) -> ScriptedResponse | None:
        """What the writer writes, what the reader does, or the next item."""
        if kind_of(request) != "turn":
            return self._writer.answer(request, self._facts)
        if self.probe is None:
            said = super().take(request)
            return said and self._with_notes(request, said)
        call = _next_call(self.probe, self.sent[-1])
        if call is None:
            return ScriptedResponse(text="Done.")
        return ScriptedResponse(content=({"type": "tool_use", "name": call.tool, "input": dict(call.input)},))

    def _with_notes(self, request: wire.Request, said: ScriptedResponse) -> ScriptedResponse:
        *before, last = said.content
        if last["type"] != "text":
            return said
        text = last["text"] + self._writer.notes(request, self._facts)
        return said.model_copy(update={"content": (*before, {**last, "text": text})})


def _next_call(probe: Probe, body: Mapping[str, Any]) -> Calls | None:
    """What the reader does with a request; notes in the probe what it saw in it."""
    fact, shown = probe.fact, list(_texts(body))
    is_seen = any(fact.sentence in " ".join(text.split()) for text in shown)
    if not probe.made and not probe.has_searched:
        probe.in_sight = is_seen
        probe.folded = max(
            (int(end) for text in shown for end in re.findall(r"^\[ID:d\d+, ref:q1\.\.q(\d+)", text)),
            default=0,
        )
        wanted = frozenset(words(fact.question))
        lines = [(record_id, len(wanted.intersection(words(text)))) for record_id, text in _id_lines(shown)]
        probe.is_named = any(record_id == fact.record_id and shared for record_id, shared in lines)
        best = max(lines, key=lambda line: line[1], default=("", 0))
        if not is_seen and best[1] * 2 >= len(wanted):
            probe.made += 1
            return calls("retrieve_full_context", id=best[0])
    if is_seen and probe.calls is None and probe.made <= CALLS:
        probe.calls = probe.made
    if probe.has_searched:
        hits = _HIT.findall(shown[-1]) if not probe.is_hit else []
        ids = [record_id for record_id, _, _ in hits]
        probe.is_hit = probe.is_hit or fact.record_id in ids
        if probe.calls is None and probe.made < CALLS and hits:
            probe.made += 1
            return _reading(fact, hits)
        return None
    probe.has_searched = True
    probe.made += 1
    return calls(SEARCH, query=fact.question)


def _reading(fact: Fact, hits: Sequence[tuple[str, str, str]]) -> Calls:
    """Read the record whose excerpt has most of the question's words, from its offset on."""
    wanted = frozenset(words(fact.question))
    record_id, about, _ = max(hits, key=lambda hit: len(wanted.intersection(words(hit[2]))))
    offset = _OFFSET.search(about)
    return calls("retrieve_full_context", id=record_id, **({"offset": int(offset[1])} if offset else {}))


def _id_lines(shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The ids that can be read, each with the text that names it; of a digest every sentence with an id."""
    for text in shown:
        line = _LINE.match(text)
        if line and line[1].startswith("d"):
            for piece in re.split(r"(?<=[.;])\s", line[3]):
                yield from ((record_id, piece) for record_id in _ID.findall(piece))
        elif line:
            yield line[2] or line[1], line[3]


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the messages but for the question, which is the last that a user wrote."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    texts = [text for block in blocks for text in _texts_of(block)]
    own = max(place for place, text in enumerate(texts) if re.match(r"\[ID:q\d+\] ", text))
    yield from (text for place, text in enumerate(texts) if place != own)


def _texts_of(block: Mapping[str, Any]) -> Iterator[str]:
    if block["type"] == "text":
        yield block["text"]
    elif block["type"] == "tool_result":
        content = block["content"]
        yield from (part["text"] for part in content if part["type"] == "text")
