"""The search index of queries that have none yet, from their records. Light: `summarise` regroups with it too."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dualtrack.memory.passages import RECORD_LIMIT
from dualtrack.memory.query_index import index_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.memory.query_index import QueryIndex
    from dualtrack.storage.stores import ToolStores


def made_now(
    stores: ToolStores, user: str, conversation_id: str, numbers: Sequence[int], seconds: float
) -> Iterator[tuple[int, QueryIndex]]:
    """The index of these queries, by number, in order; at least of one, until the time is up. That of a query without
    records is empty."""
    until = time.monotonic() + seconds
    for after, before in _stretches(numbers):
        tracks = stores.history.tracks_between(user, conversation_id, after, before)
        done = after
        for number, records in stores.history.heads(user, conversation_id, after, before, RECORD_LIMIT + 1):
            yield from ((empty, index_of((), None)) for empty in range(done + 1, number))
            yield number, index_of(records, tracks.get(number))
            done = number
            if time.monotonic() > until:
                return
        yield from ((empty, index_of((), None)) for empty in range(done + 1, before))


def _stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers, each time as the numbers before and after them."""
    start = 0
    for place, number in enumerate(numbers, start=1):
        if place == len(numbers) or numbers[place] != number + 1:
            yield numbers[start] - 1, number + 1
            start = place
