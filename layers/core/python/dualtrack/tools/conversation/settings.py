"""Every parameter of a conversation's search, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ConversationRanking = Literal["keywords", "meaning", "both"]


@dataclass(frozen=True, slots=True)
class ConversationSearch:
    """``ranking``: what decides the order; without vectors, keywords do. ``k1`` and ``b`` are BM25's, ``rrf_k`` that of
    reciprocal rank fusion, in which meaning counts ``meaning_weight`` times.

    A search is limited, and the next one continues. It reads at most ``queries`` that were not indexed when they ended,
    oldest first, for about ``read_seconds``, and embeds about ``texts`` of the past, newest queries first, for
    ``embed_seconds``.

    Of the ``windows`` records that match best in words, an excerpt of ``excerpt`` characters of the window or passage
    that does is compared in meaning too, and shown: the whole says too much else, and its vector too little of what was
    found.
    ``part_malus`` is taken from the similarity of a part of a long record: it has many, and one of them is always near.
    """

    ranking: ConversationRanking = "both"
    k1: float = 1.5
    b: float = 0.75
    rrf_k: int = 10
    meaning_weight: int = 2
    read_seconds: float = 15.0
    queries: int = 2_000
    embed_seconds: float = 10.0
    texts: int = 480
    windows: int = 12
    excerpt: int = 240
    part_malus: float = 0.04


DEFAULT = ConversationSearch()
