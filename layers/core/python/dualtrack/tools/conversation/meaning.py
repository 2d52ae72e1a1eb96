"""Similarity in meaning: an int8 vector for each record, computed at the first search and stored, and vectors of the
excerpts that a search finds by words, which are not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualtrack.tools.conversation.index import keep
from dualtrack.tools.documentation.values import Degraded
from dualtrack.tools.documentation.vectors import from_int8, to_int8, vector_scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.storage.search_index import Segment
    from dualtrack.storage.stores import SearchStores
    from dualtrack.tools.conversation.index import Index
    from dualtrack.tools.conversation.settings import ConversationSearch
    from dualtrack.tools.documentation.dependencies import SearchNeeds
    from dualtrack.tools.documentation.embeddings import Embedder
    from dualtrack.tools.running import Running


@dataclass(frozen=True, slots=True)
class Vectors:
    """The query's vector (float32), the concatenated vectors (int8) of each segment by its key, and the excerpts'
    vectors (float32) by record id."""

    query: bytes
    segments: Mapping[str, bytes]
    excerpts: Mapping[str, bytes]


def closeness(
    index: Index,
    query: str,
    excerpts: Mapping[str, str],
    running: Running,
    needs: SearchNeeds,
    settings: ConversationSearch,
) -> dict[str, float] | None:
    """The similarity of each record to the query, by its id, in (0, 1]; None if embeddings are not available.

    ``excerpts``: texts from within records, by their ids; of passage and excerpt the closer one counts. Records without
    vectors are missing.
    """
    embedder, deps = needs.embedder, needs.documentation
    if embedder is None:
        return None
    user, conversation_id = running.user, running.conversation_id
    stored = [segment for segment in index.segments if segment.key in index.kept]
    known = needs.stores.search_index.vectors(user, conversation_id, embedder.model, stored)
    missing = [segment for segment in reversed(index.segments) if segment.key not in known][
        : settings.segments
    ]
    try:
        made = deps.loop.run(
            _embedded(query, missing, excerpts, embedder, settings), settings.embed_seconds + 1
        )
        _keep(made, index, running, needs.stores, embedder.model)
        close = _scores(made.query, index.segments, {**known, **made.segments})
        inside = vector_scores(made.query, list(made.excerpts.values()), "cosine")
        return close | {
            record_id: max(score, close.get(record_id, 0.0))
            for record_id, score in zip(made.excerpts, inside, strict=True)
        }
    except (Degraded, TimeoutError) as error:
        deps.logger.info("conversation search without meaning", extra={"reason": type(error).__name__})
        return None


async def _embedded(
    query: str,
    missing: Sequence[Segment],
    excerpts: Mapping[str, str],
    embedder: Embedder,
    settings: ConversationSearch,
) -> Vectors:
    """Embed the query, each segment and the excerpts in their own calls. Raises `Degraded` if the query fails; what
    else fails is left out."""
    slots = asyncio.Semaphore(settings.segments_at_once)

    async def vectors_of(segment: Segment) -> bytes:
        async with slots:
            texts = [passage.text or passage.record_id for passage in segment.passages]
            vectors = await embedder.embed(texts, "document", settings.embed_seconds)
        return b"".join(map(to_int8, vectors))

    async def vectors_of_excerpts() -> tuple[bytes, ...]:
        texts = list(excerpts.values())
        return await embedder.embed(texts, "document", settings.embed_seconds) if texts else ()

    of_query = asyncio.create_task(embedder.embed([query], "query", settings.embed_seconds))
    of_excerpts = asyncio.create_task(vectors_of_excerpts())
    of_segments = {asyncio.create_task(vectors_of(segment)): segment.key for segment in missing}
    done, late = await asyncio.wait({of_query, of_excerpts, *of_segments}, timeout=settings.embed_seconds)
    for task in late:
        task.cancel()
    made = {key: task for task, key in of_segments.items() if task in done and task.exception() is None}
    if of_query in late:
        raise Degraded("embeddings took too long")
    (vector,) = of_query.result()
    has_excerpts = of_excerpts in done and of_excerpts.exception() is None
    found = dict(zip(excerpts, of_excerpts.result(), strict=True)) if has_excerpts else {}
    return Vectors(vector, {key: task.result() for key, task in made.items()}, found)


def _keep(made: Vectors, index: Index, running: Running, stores: SearchStores, model: str) -> None:
    """Store the vectors of stored segments."""
    writes = [
        write
        for key in sorted(made.segments.keys() & index.kept)
        for write in stores.search_index.vector_writes(
            running.user, running.conversation_id, model, key, made.segments[key]
        )
    ]
    if writes:
        keep(stores, running, writes)


def _scores(query: bytes, segments: Sequence[Segment], vectors: Mapping[str, bytes]) -> dict[str, float]:
    """Scores by record id. Vectors whose length differs from the query's are left out."""
    size = len(query) // 4
    usable = [
        segment for segment in segments if len(vectors.get(segment.key, b"")) == size * len(segment.passages)
    ]
    ids = [passage.record_id for segment in usable for passage in segment.passages]
    rows = [
        from_int8(vectors[segment.key][start : start + size])
        for segment in usable
        for start in range(0, size * len(segment.passages), size)
    ]
    return dict(zip(ids, vector_scores(query, rows, "cosine"), strict=True))
