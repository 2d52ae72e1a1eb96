"""The texts of queries that are compared in meaning, and their vectors as they are stored. Light: `summarise` makes
those of a block."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from dualtrack.memory.condensed import condensed
from dualtrack.memory.passages import RECORD_LIMIT
from dualtrack.memory.query_index import PASSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.memory.query_index import QueryIndex, Spot
    from dualtrack.storage.stores import ToolStores


def texts_of(
    stores: ToolStores, user: str, conversation_id: str, queries: Mapping[int, QueryIndex]
) -> dict[int, tuple[str, ...]]:
    """The text of each of the queries' spots, in order; reads the queries that have more than passages."""
    texts: dict[int, tuple[str, ...]] = {}
    for number, index in queries.items():
        spots = index.spots()
        parts = _condensed(stores, user, conversation_id, number, spots)
        texts[number] = tuple(
            (spot.passage.text if spot.offset == PASSAGE else next(parts)) or spot.passage.record_id
            for spot in spots  # an empty text has no vector
        )
    return texts


def _condensed(
    stores: ToolStores, user: str, conversation_id: str, number: int, spots: Sequence[Spot]
) -> Iterator[str]:
    """The condensed parts of a query's records, in order."""
    long = [spot for spot in spots if spot.offset != PASSAGE]
    if not long:
        return
    heads = stores.history.heads(user, conversation_id, number - 1, number + 1, RECORD_LIMIT)
    contents = {record.record_id: record.content for _, records in heads for record in records}
    for record_id, own in itertools.groupby(long, key=lambda spot: spot.passage.record_id):
        yield from condensed(contents.get(record_id, ""), [(spot.offset, spot.end) for spot in own])
