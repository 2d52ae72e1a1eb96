"""Similarity in meaning: int8 vectors of each record's spots, most of them stored when blocks were regrouped, and
vectors of the excerpts that a search finds by words, which are not stored."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.errors import Degraded
from dualtrack.knowledge.int8 import to_int8
from dualtrack.knowledge.vectors import int8_scores, vector_scores
from dualtrack.memory.query_index import PASSAGE
from dualtrack.storage.search_index import blocks_to_write
from dualtrack.tools.conversation.index import keep
from dualtrack.tools.conversation.postings import Match
from dualtrack.tools.conversation.spots import texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.knowledge.embedder import Embedder, InputType
    from dualtrack.storage.search_index import StoredIndex
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tools.conversation.index import ConversationIndex
    from dualtrack.tools.conversation.settings import ConversationSearch
    from dualtrack.tools.running import Running
    from dualtrack.tools.search_needs import SearchNeeds


_TOGETHER: Final = 4
"""Queries of the past whose texts are embedded in one call."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """The query's vector (float32), the joined vectors (int8) of queries by number, and the excerpts' vectors (float32)
    by record id."""

    query: bytes
    queries: Mapping[int, bytes]
    excerpts: Mapping[str, bytes]


def closeness(
    index: ConversationIndex,
    query: str,
    excerpts: Mapping[str, str],
    running: Running,
    needs: SearchNeeds,
    settings: ConversationSearch,
) -> dict[str, Match] | None:
    """The similarity of each record's closest spot to the query, by record id, in (0, 1]; None if embeddings are not
    available.

    ``excerpts``: texts from within records, by their ids, which count as their passages do. Records without vectors are
    missing.
    """
    embedder = needs.embedder
    if embedder is None:
        return None
    user, conversation_id = running.user, running.conversation_id
    stores = needs.stores.across(running.chat.ancestry)
    found = stores.search_index.vectors(user, conversation_id, embedder.model, index.after, index.last + 1)
    missing = _missing(index, found, settings.texts)
    texts = texts_of(stores, user, conversation_id, {number: index.queries[number] for number in missing})
    try:
        made = needs.loop.run(
            _embedded(query, texts, excerpts, embedder, settings), settings.embed_seconds + 1
        )
        known = {**found.queries, **made.queries}
        _keep(made, known, found, index, running, stores, embedder.model)
        close = _closest(made.query, index, known, settings.part_malus)
        inside = vector_scores(made.query, list(made.excerpts.values()), "cosine")
    except (Degraded, TimeoutError) as error:
        needs.logger.info("conversation search without meaning", extra={"reason": type(error).__name__})
        return None
    for record_id, score in zip(made.excerpts, inside, strict=True):
        if record_id not in close or close[record_id].score < score:
            close[record_id] = Match(score, PASSAGE)
    return close


def _missing(index: ConversationIndex, found: StoredIndex, most: int) -> list[int]:
    """The newest queries without vectors, with at most so many texts; at least one."""
    missing: list[int] = []
    for number in sorted(index.queries, reverse=True):
        if number > found.after and number not in found.queries and index.queries[number].passages:
            most -= len(index.queries[number].spots())
            if missing and most < 0:
                break
            missing.append(number)
    return missing


async def _embedded(
    query: str,
    texts: Mapping[int, Sequence[str]],
    excerpts: Mapping[str, str],
    embedder: Embedder,
    settings: ConversationSearch,
) -> Vectors:
    """Embed the query, the texts of a few queries of the past together, and the excerpts, in their own calls. Raises
    `Degraded` if the query fails; what else fails is left out."""

    async def embedded(listed: Sequence[str], kind: InputType = "document") -> tuple[bytes, ...]:
        return await embedder.embed(listed, kind, settings.embed_seconds) if listed else ()

    numbers = list(texts)
    groups = [numbers[start : start + _TOGETHER] for start in range(0, len(numbers), _TOGETHER)]
    of_query = asyncio.create_task(embedded([query], "query"))
    of_excerpts = asyncio.create_task(embedded(list(excerpts.values())))
    of_past = [
        asyncio.create_task(embedded([text for own in some for text in texts[own]])) for some in groups
    ]
    _, late = await asyncio.wait({of_query, of_excerpts, *of_past}, timeout=settings.embed_seconds)
    for task in late:
        task.cancel()
    if of_query in late:
        raise Degraded("embeddings took too long")
    found = dict(zip(excerpts, _vectors(of_excerpts), strict=False))
    made: dict[int, bytes] = {}
    for some, task in zip(groups, of_past, strict=True):
        rest = iter(_vectors(task))
        own = {number: list(itertools.islice(rest, len(texts[number]))) for number in some}
        made |= {number: to_int8(vectors) for number, vectors in own.items() if vectors}
    (vector,) = of_query.result()
    return Vectors(vector, made, found)


def _vectors(task: asyncio.Task[tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """What a call has returned; nothing if it failed or was late."""
    return task.result() if task.done() and not task.cancelled() and task.exception() is None else ()


def _keep(
    made: Vectors,
    known: Mapping[int, bytes],
    found: StoredIndex,
    index: ConversationIndex,
    running: Running,
    stores: ToolStores,
    model: str,
) -> None:
    """Store the vectors."""
    sizes = {number: len(vectors) for number, vectors in known.items()}
    groups = blocks_to_write(sizes, found.blocks, made.queries.keys(), index.last)
    keep(
        stores,
        running,
        (
            stores.search_index.vectors_writes(
                running.user, running.conversation_id, model, {number: known[number] for number in group}
            )
            for group in groups
        ),
    )


def _closest(
    query: bytes, index: ConversationIndex, vectors: Mapping[int, bytes], part_malus: float
) -> dict[str, Match]:
    """The closest spot of each record by its id. Vectors whose length differs from the query's are left out."""
    size = len(query) // 4
    spots = {number: own.spots() for number, own in index.queries.items() if number in vectors}
    usable = [number for number, own in spots.items() if len(vectors[number]) == size * len(own)]
    flat = [spot for number in usable for spot in spots[number]]
    scores = int8_scores(query, b"".join(vectors[number] for number in usable))
    close: dict[str, Match] = {}
    for spot, similarity in zip(flat, scores, strict=True):
        score = similarity if spot.offset == PASSAGE else max(0.0, similarity - part_malus)
        if spot.passage.record_id not in close or close[spot.passage.record_id].score < score:
            close[spot.passage.record_id] = Match(score, spot.offset, spot.end)
    return close
