"""What of the past is not sent again, because the model's service would refuse the request (CONTRACT 6). Pure.

q3 was declined                    [ID:q3] (declined by the model's service; left out)
q6 was declined behind a declined  q5: then what the newest query before them has brought is left out, once, and if
                                   that helps, for good: its question stays
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.ids import query_id, response_id
from dualtrack.memory.records import QueryTrack, TrackBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.memory.records import Record

LEFT_OUT: Final = "(declined by the model's service; left out)"
"""What is sent in place of a declined query, under its id."""

_RESULTS_LEFT_OUT: Final = (
    "(What was found and answered here is left out: the model's service declined what followed.)"
)


def is_declined(records: Iterable[Record]) -> bool:
    """Whether the model's service declined to answer the query of these records."""
    return any(record.stop == "refusal" for record in records)


def declined_block(query: Record | TrackBlock) -> TrackBlock:
    """The block of a declined query."""
    return TrackBlock(query.record_id, query.role, LEFT_OUT, query.created_at)


def declined_track(track: QueryTrack) -> QueryTrack:
    """The track of a declined query in place of one that has its words: earlier releases wrote such."""
    asked = replace(declined_block(track.blocks[0]), record_id=query_id(track.query))
    return QueryTrack(track.query, (asked,))


def is_in_place(block: TrackBlock) -> bool:
    """Whether the block stands in place of what is left out."""
    return block.content in (LEFT_OUT, _RESULTS_LEFT_OUT)


def results_block(number: int, at: str) -> TrackBlock:
    """The block in place of what a query has brought."""
    return TrackBlock(response_id(number), "assistant", _RESULTS_LEFT_OUT, at)


def left_out_by(tracks: Iterable[QueryTrack], *also: int) -> frozenset[int]:
    """The queries whose results later ones have left out; ``also``: the one that the running query leaves out."""
    return frozenset({*(track.leaves_out for track in tracks), *also} - {0})


def as_sent(tracks: Sequence[QueryTrack], *also: int) -> tuple[QueryTrack, ...]:
    """The tracks without the results that are left out."""
    out = left_out_by(tracks, *also)
    return tuple(
        _without_results(track) if track.query in out and len(track.blocks) > 1 else track for track in tracks
    )


def newest_with_results(tracks: Iterable[QueryTrack]) -> int:
    """The newest query that sends more than its question; 0 if none does."""
    numbers = (track.query for track in tracks if len(track.blocks) > 1 and not _is_without(track))
    return max(numbers, default=0)


def _is_without(track: QueryTrack) -> bool:
    return any(block.content == _RESULTS_LEFT_OUT for block in track.blocks)


def _without_results(track: QueryTrack) -> QueryTrack:
    """The question without what was found; of a query that never got an answer its question goes, too: the service has
    not taken it yet."""
    if not track.blocks[-1].ref:
        return declined_track(track)
    own = {query_id(track.query), f"{query_id(track.query)}-sum"}
    asked = tuple(block for block in track.blocks if block.record_id in own)
    at = track.blocks[-1].created_at
    return replace(track, blocks=(*asked, results_block(track.query, at)), whole_tokens=0)
