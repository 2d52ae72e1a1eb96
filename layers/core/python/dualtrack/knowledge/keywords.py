"""Ranking by keywords: BM25 (rank-bm25) over words (`dualtrack.knowledge.words`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rank_bm25 import BM25Plus

from dualtrack.knowledge.words import Terms, asked, words

if TYPE_CHECKING:
    from collections.abc import Sequence


def keyword_scores(question: str, texts: Sequence[str], *, k1: float, b: float) -> tuple[float, ...]:
    """BM25 scores of ``texts`` for the question, each at least 0; all 0 if no word matches.

    Uses rank-bm25's Plus variant for its idf log((N + 1) / df): in a small set of sections Okapi's idf is negative for
    words that more than half of them share, and rank-bm25's floor for it can exceed the weight of rarer words. Plus
    adds a constant to every section, even to one without the word; it is subtracted again, so that a section with none
    of the words scores 0.
    """
    known = Terms()
    terms = [words(text, known) for text in texts]
    if not any(terms):
        return tuple(0.0 for _ in texts)
    index = BM25Plus(terms, k1=k1, b=b)
    query = [term for term in asked(question) if term in index.idf]
    absent = sum(index.idf[term] * index.delta for term in query)
    present = [not frequencies.keys().isdisjoint(query) for frequencies in index.doc_freqs]
    scores = index.get_scores(query)
    return tuple(
        max(0.0, float(score) - absent) if matches else 0.0
        for score, matches in zip(scores, present, strict=True)
    )
