"""How well `search_conversation` finds: ``uv run --group test python -m bench.conversation_search``
(docs/retrieval.md).

175 questions about four conversations, labelled with the records that answer them before any run, through the product's
own stores, index and ranking, with the local model that the function `embed` runs. *Behind a digest*: at least one
answering record belongs to a query that is already folded, with a small history budget.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.knowledge import minilm
from dualtrack.memory.ancestry import Ancestry
from dualtrack.memory.digests import Past, TrackBudget, past_to_send
from dualtrack.tools.conversation.index import up_to_date
from dualtrack.tools.conversation.meaning import closeness
from dualtrack.tools.conversation.postings import matches
from dualtrack.tools.conversation.search import best, excerpts_at
from dualtrack.tools.conversation.settings import DEFAULT, ConversationSearch
from rich.console import Console
from rich.table import Table

from bench.conversation_search.corpus import AT, USER, put, talks
from bench.retrieval.metrics import interval, recall
from tests.drivers.world import make_world, search_needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.storage.history import HistoryStore
    from dualtrack.storage.stores import Stores
    from dualtrack.tools.running import Running
    from dualtrack.tools.search_needs import SearchNeeds

    from bench.conversation_search.corpus import Talk

TOKENIZER: Final = Path(__file__).resolve().parents[2] / "functions" / "embed" / "tokenizer.json"
PATIENT: Final[dict[str, Any]] = {"embed_seconds": 7_200, "read_seconds": 7_200, "texts": 1_000_000}
WAYS: Final = {
    "keywords": ConversationSearch(ranking="keywords"),
    "meaning": ConversationSearch(ranking="meaning", **PATIENT),
    "both, k=60, 1:1": ConversationSearch(rrf_k=60, meaning_weight=1, **PATIENT),
    "both, k=60, 1:2": ConversationSearch(rrf_k=60, meaning_weight=2, **PATIENT),
    "both, k=10, 1:1": ConversationSearch(rrf_k=10, meaning_weight=1, **PATIENT),
    "both, k=10, 1:2": ConversationSearch(rrf_k=10, meaning_weight=2, **PATIENT),
}
TRACK_TOKENS: Final = 8_000
CUTS: Final = (5, 20)
KINDS: Final = ("documentation", "dialogues", "behind a digest")
PAIRS: Final = (
    ("both, k=10, 1:2", "keywords"),
    ("both, k=10, 1:2", "meaning"),
    ("both, k=10, 1:2", "both, k=60, 1:1"),
    ("both, k=10, 1:2", "both, k=10, 1:1"),
    ("both, k=10, 1:1", "keywords"),
    ("both, k=10, 1:1", "meaning"),
)
Found = list[tuple[frozenset[str], dict[tuple[str, int], float]]]
"""For each question: its kinds, and recall by ranking and cut."""


class InProcess:
    """The local model without its function."""

    model = minilm.NAME

    def __init__(self) -> None:
        self._vector = cache(minilm.load(TOKENIZER).embed)

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:
        """One vector per text, in order."""
        return tuple(map(self._vector, texts))

    async def close(self) -> None:
        """Nothing to close."""


def running(talk: Talk, question: str) -> Running:
    """A call of the tool in the query after the conversation's last."""
    chat: Any = SimpleNamespace(
        user=USER,
        conversation_id=talk.conversation_id,
        query=len(talk.queries) + 1,
        chat_id=talk.chat_id,
        ancestry=Ancestry(),
        pin=None,
    )
    call: Any = SimpleNamespace(input={"query": question}, id="q1-t1", tool="search_conversation")
    search_call: Any = SimpleNamespace(user=USER, conversation_id=talk.conversation_id, chat=chat, call=call)
    return search_call  # type: ignore[no-any-return]


def folded(history: HistoryStore, talk: Talk) -> int:
    """The last query that the digest covers when the chat after the last query is sent."""
    tracks = history.tracks(USER, talk.conversation_id, len(talk.queries))
    past, budget = Past(None, ()), TrackBudget(TRACK_TOKENS)
    for track in tracks:
        past = past_to_send(Past(past.digest, (*past.tracks, track)), budget, AT, cold=False)
    return past.digest.through if past.digest else 0


def measure() -> Found:
    """The figures of every question, in a fixed order."""
    with make_world() as world:
        needs = search_needs(world.stores, InProcess())
        return [row for talk in talks() for row in _of_talk(talk, world.stores, needs)]


def _of_talk(
    talk: Talk, stores: Stores, needs: SearchNeeds
) -> Iterator[tuple[frozenset[str], dict[tuple[str, int], float]]]:
    put(stores, talk)
    hidden = folded(stores.history, talk)
    queries, records = len(talk.queries), sum(map(len, talk.queries))
    print(
        f"{talk.conversation_id}: {queries} queries, {records} records, q1 to q{hidden} behind a digest, "
        f"{len(talk.questions)} questions",
        flush=True,
    )
    for question, answers, source in talk.questions:
        call = running(talk, question)
        index = up_to_date(needs.stores, call, WAYS["meaning"])
        said = matches(question, index.queries.values(), DEFAULT.k1, DEFAULT.b)
        places = {record_id: said[record_id].offset for record_id in list(said)[: DEFAULT.windows]}
        within = excerpts_at(needs.stores, call, question, places, DEFAULT)
        close = closeness(index, question, within, call, needs, WAYS["meaning"])
        behind = any(int(record_id.split("-")[0][1:]) <= hidden for record_id in answers)
        figures = {
            (way, cut): recall([passage.record_id for passage in passages], dict.fromkeys(answers, 1), cut)
            for way, chosen in WAYS.items()
            for passages in [best(index, said, None if way == "keywords" else close, chosen)]
            for cut in CUTS
        }
        yield frozenset([source, "behind a digest"] if behind else [source]), figures


def main() -> None:
    """Print the tables."""
    measured = measure()
    of_kind = {kind: [figures for kinds, figures in measured if kind in kinds] for kind in KINDS}
    console = Console(width=150)
    table = Table(
        "ranking",
        *(f"recall@{cut}" for cut in CUTS),
        *(f"{kind} ({len(of_kind[kind])}) @{cut}" for kind in KINDS for cut in CUTS),
        title=f"{len(measured)} questions: mean (95 % bootstrap interval)",
    )
    for way in WAYS:
        whole = [[figures[way, cut] for _, figures in measured] for cut in CUTS]
        parts = [[figures[way, cut] for figures in of_kind[kind]] for kind in KINDS for cut in CUTS]
        cells = ["{:.3f} ({:.3f} to {:.3f})".format(*interval(values)) for values in whole]
        table.add_row(
            way, *cells, *(f"{sum(values) / len(values):.3f}" if values else "" for values in parts)
        )
    console.print(table)
    pairs = Table("difference", *(f"recall@{cut}" for cut in CUTS), title="Paired differences")
    for left, right in PAIRS:
        differences = [[figures[left, cut] - figures[right, cut] for _, figures in measured] for cut in CUTS]
        cells = ["{:+.3f} ({:+.3f} to {:+.3f})".format(*interval(values)) for values in differences]
        pairs.add_row(f"{left} − {right}", *cells)
    console.print(pairs)


if __name__ == "__main__":
    main()
