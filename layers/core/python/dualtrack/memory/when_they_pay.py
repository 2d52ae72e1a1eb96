"""When the summaries of what stands whole pay (CONTRACT 6, `summaries: when_they_pay`). Pure.

    q1 q2 q3 │ Q4 Q5 Q6 │ q7        q: summarised    Q: whole, in the messages in which it was sent
             └ breakpoint

After each answer, reading what stands whole in the next `QUERIES_AHEAD` queries is compared with summarising it. If
reading costs as much, or if the past approaches its budget, the oldest of it are summarised together: a batch. A batch
begins a new prefix, like a fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from dualtrack.memory.joint_summaries import MOST_AT_ONCE, cheapest
from dualtrack.memory.summaries import summary_requests, track_of
from dualtrack.models.prices import rates_of
from dualtrack.text import cautious_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.memory.joint_summaries import LastCall
    from dualtrack.memory.records import CallSums, QueryTrack, Record
    from dualtrack.memory.summaries import SummaryRequest
    from dualtrack.models.prices import Rates

QUERIES_AHEAD: Final = 4
"""How many further queries a conversation is expected to have."""


@dataclass(frozen=True, slots=True)
class WholeQuery:
    """A query that stands whole: its records, and the cautious ``tokens`` of its messages and of its track."""

    records: tuple[Record, ...]
    tokens: int
    summarised_tokens: int
    requests: tuple[SummaryRequest, ...]


def whole_query(records: tuple[Record, ...], tokens: int, whole: int, characters: int) -> WholeQuery:
    """A query with these records. Its summaries are taken as long as their limit of ``characters``."""
    requests = summary_requests(records, whole)
    summaries = {request.record_id: "x" * characters for request in requests}
    blocks = track_of(records, summaries, whole, "").blocks
    return WholeQuery(records, tokens, sum(cautious_tokens(block.text) for block in blocks), requests)


@dataclass(frozen=True, slots=True)
class Summariser:
    """Who would make the summaries: after the ``last`` call, on its prefix, or ``model``, one by one. ``scale``: how
    many tokens the service has counted for a token of the cautious estimate."""

    last: LastCall
    model: str
    characters: int
    scale: float = 1.0


def batch(
    queries: Sequence[WholeQuery],
    pace: CallSums,
    summariser: Summariser,
    *,
    is_forced: bool,
    most: Callable[[Sequence[SummaryRequest]], int] = len,
) -> tuple[WholeQuery, ...]:
    """The queries to summarise now, the oldest of those that stand whole, oldest first; none if that does not pay.

    ``is_forced``: the budget for the past needs it. ``most``: how many of these requests, from the first on, the chat
    can pay for, even one by one. A query of which it cannot pay for all waits with those after it; if the past needs
    it and it is the oldest, some of its records get extracts.
    """
    oldest = _within(queries, most)
    if not oldest:
        return tuple(queries[:1]) if is_forced else ()
    later = sum(query.tokens for query in queries[len(oldest) :])
    spared = sum(query.tokens - query.summarised_tokens for query in oldest)
    written = sum(query.summarised_tokens for query in oldest) + later
    requests = [request for query in oldest for request in query.requests]
    rates, scale = rates_of(summariser.last.model), summariser.scale / 1_000_000
    asked = cheapest(summariser.last, requests, summariser.model, summariser.characters) if requests else 0.0
    cost = asked + rates.cache_write * written * scale
    saved = QUERIES_AHEAD * read_price(pace, rates) * spared * scale
    return oldest if is_forced or (spared > 0 and saved >= cost) else ()


def _within(
    queries: Sequence[WholeQuery], most: Callable[[Sequence[SummaryRequest]], int]
) -> tuple[WholeQuery, ...]:
    """The oldest queries whose records one joint call can summarise, or the oldest one alone; of these the oldest whose
    summaries can be paid for."""
    requests = [request for query in queries for request in query.requests]
    counts = list(accumulate(len(query.requests) for query in queries))
    paid = most(requests)
    return tuple(
        query
        for index, (query, count) in enumerate(zip(queries, counts, strict=True))
        if count <= paid and (count <= MOST_AT_ONCE or not index)
    )


def read_price(pace: CallSums, rates: Rates) -> float:
    """What reading a million tokens of the past costs in a query of this conversation: its first call as often cold as
    so far, its later ones from the cache."""
    further = pace.queries - 1
    cold = pace.cold / further if further > 0 else 0.0
    later = pace.calls / pace.queries - 1 if pace.queries else 0.0
    return rates.cache_read * (1 - cold + later) + rates.cache_write * cold


def newest_pace(tracks: Sequence[QueryTrack]) -> CallSums | None:
    """The sums up to the newest of these queries that has them."""
    return next((track.pace for track in reversed(tracks) if track.pace.queries), None)
