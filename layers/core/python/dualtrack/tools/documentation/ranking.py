"""The order of the sections: by keywords while the embeddings are fetched, then the fusion of both."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dualtrack.knowledge.fusion import min_max_scores, ranked, reciprocal_rank_scores
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.scripts import knows
from dualtrack.knowledge.vectors import vector_scores
from dualtrack.knowledge.words import has_identifier
from dualtrack.tools.documentation.cache import embedding_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.knowledge.embedder import Embedder, InputType
    from dualtrack.tools.documentation.session import Session
    from dualtrack.tools.documentation.settings import RetrievalSettings
    from dualtrack.tools.documentation.values import DocSection


def begin_query_vector(question: str, session: Session) -> asyncio.Task[bytes] | None:
    """Embed the question while the documentation is being fetched; None without an embedder that knows its script."""
    embedder = session.deps.embedder
    if embedder is None or not knows(embedder.model, question):
        return None
    return asyncio.create_task(_query_vector(question, embedder, session))


async def fused_order(
    question: str, chunks: Sequence[DocSection], query_vector: asyncio.Task[bytes] | None, session: Session
) -> tuple[int, ...]:
    """Indexes of the chunks, best first, by both rankings or by keywords alone."""
    settings, stages = session.deps.settings, session.stages
    vectors = asyncio.create_task(_vector_ranking(chunks, query_vector, session))
    try:
        with stages.timed("keywords"):
            texts = [chunk.searchable for chunk in chunks]
            keywords = await asyncio.to_thread(keyword_scores, question, texts, k1=settings.k1, b=settings.b)
        meaning = await vectors
    finally:
        vectors.cancel()
    with stages.timed("fusion"):
        return fuse(keywords, meaning, settings, identifier=has_identifier(question))


def fuse(
    keywords: Sequence[float],
    meaning: Sequence[float] | None,
    settings: RetrievalSettings,
    *,
    identifier: bool = False,
) -> tuple[int, ...]:
    """Indexes of the chunks, best first, by keywords alone or by keywords and meaning. ``identifier``: whether
    the question holds one, so that keywords count more."""
    if meaning is None:
        return ranked(keywords)
    if settings.fusion == "min_max_sum":
        return ranked(min_max_scores([keywords, meaning]))
    said = [keywords] * (settings.identifier_weight if identifier else 1)
    return ranked(reciprocal_rank_scores([*said, *[meaning] * settings.meaning_weight], settings.rrf_k))


async def _vector_ranking(
    chunks: Sequence[DocSection], query_vector: asyncio.Task[bytes] | None, session: Session
) -> tuple[float, ...] | None:
    """Closeness of each chunk to the question; None without embeddings."""
    settings, stages, embedder = session.deps.settings, session.stages, session.deps.embedder
    if query_vector is None or embedder is None:
        return None
    texts = [chunk.searchable[: settings.bounds.embedded] for chunk in chunks]
    known = await _known(texts, "document", embedder, session)

    async def vectors(share: float) -> tuple[float, ...]:
        query = await query_vector
        usable = {text: vector for text, vector in known.items() if len(vector) == len(query)}
        missing = [text for text in dict.fromkeys(texts) if text not in usable]
        fresh = (
            dict(zip(missing, await embedder.embed(missing, "document", share), strict=True))
            if missing
            else {}
        )
        _keep(fresh, "document", embedder, session)
        by_text = {**usable, **fresh}
        with stages.timed("vectors"):
            return vector_scores(query, [by_text[text] for text in texts], settings.distance)

    return await stages.optional("embed", settings.limits.embed, vectors)


async def _query_vector(question: str, embedder: Embedder, session: Session) -> bytes:
    known = await _known([question], "query", embedder, session)
    if question in known:
        return known[question]
    (vector,) = await embedder.embed([question], "query", session.deps.settings.limits.embed)
    _keep({question: vector}, "query", embedder, session)
    return vector


async def _known(
    texts: Sequence[str], input_type: InputType, embedder: Embedder, session: Session
) -> dict[str, bytes]:
    keys = {embedding_key(embedder.model, input_type, text): text for text in texts}
    cached = await session.recall(keys)
    return {keys[key]: vector for key, vector in cached.items()}


def _keep(vectors: dict[str, bytes], input_type: InputType, embedder: Embedder, session: Session) -> None:
    for text, vector in vectors.items():
        session.embeddings[embedding_key(embedder.model, input_type, text)] = vector
