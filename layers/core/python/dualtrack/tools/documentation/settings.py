"""Every parameter of the documentation search, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dualtrack.knowledge.vectors import Distance

Fusion = Literal["reciprocal_rank", "min_max_sum"]


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Seconds. After ``total`` the search ends with an error result. Each stage may use its own limit, but no more than
    what is left of the total less ``reserve``.
    """

    total: float = 28.0
    reserve: float = 0.5
    cache: float = 2.0
    understand: float = 6.0
    search: float = 8.0
    choose: float = 5.0
    context: float = 10.0
    embed: float = 6.0
    rerank: float = 8.0
    retry_after: float = 3.0
    """The longest ``Retry-After`` to wait for; a longer one is reported to the model."""
    least: float = 1.0
    """An optional stage does not start with less time left."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of untrusted input and of what the model gets, in characters unless the name says otherwise. A section of
    more than ``chunk`` is cut into pieces of about ``piece``."""

    response_bytes: int = 4_000_000
    chunk: int = 8_000
    piece: int = 2_000
    chunks: int = 400
    title: int = 200
    url: int = 500
    embedded: int = 4_000
    excerpt: int = 500
    candidates: int = 8
    candidate_description: int = 300


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How documentation is found, ranked and cut.

    ``top_fused`` and ``top_final`` are the chunks kept after fusion and after the rerank. ``rrf_k`` is the constant of
    reciprocal rank fusion, in which meaning counts ``meaning_weight`` times, and keywords ``identifier_weight`` times
    where the question holds an identifier, else once; both did better on held-out questions than
    the usual 60 and 1 (docs/retrieval.md). ``k1`` and ``b`` are BM25's. ``clear_lead``: the lead of the best library's
    score (0 to 1) from which it is chosen without asking Claude. ``first_phrasings`` go to Context7 at once; the rest,
    up to ``max_phrasings``, only if fewer than ``top_fused`` distinct chunks came back. ``response_ttl`` and
    ``embedding_ttl`` are seconds.
    """

    fusion: Fusion = "reciprocal_rank"
    distance: Distance = "cosine"
    rrf_k: int = 10
    meaning_weight: int = 2
    identifier_weight: int = 3
    k1: float = 1.5
    b: float = 0.75
    top_fused: int = 30
    top_final: int = 6
    clear_lead: float = 0.15
    first_phrasings: int = 3
    max_phrasings: int = 5
    libraries_tried: int = 3
    context_fast: bool = True
    claude_max_tokens: int = 1_024
    response_ttl: int = 24 * 3600
    embedding_ttl: int = 30 * 24 * 3600
    limits: SearchLimits = field(default_factory=SearchLimits)
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        """Raises ValueError for values that would divide by zero or make no sense."""
        if self.k1 <= 0 or not 0 <= self.b <= 1:
            raise ValueError("k1 must be positive, b between 0 and 1")
        if min(self.rrf_k, self.meaning_weight, self.identifier_weight) < 1:
            raise ValueError("rrf_k, meaning_weight and identifier_weight must be at least 1")
        if not 1 <= self.top_final <= self.top_fused:
            raise ValueError("top_final must be between 1 and top_fused")
