"""The passages of a conversation: those stored by earlier searches, and new ones, which this search stores."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.errors import ChatClosed, Contended
from dualtrack.memory.passages import RECORD_LIMIT, passages_of, windows
from dualtrack.storage.dynamo import Lost
from dualtrack.storage.past_writes import write_past
from dualtrack.storage.search_index import PASSAGES_READ, segments_of
from dualtrack.tools.conversation.postings import PASSAGE, Counted, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dualtrack.memory.passages import Passage
    from dualtrack.memory.records import QueryTrack
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.search_index import Segment
    from dualtrack.storage.stores import SearchStores
    from dualtrack.tools.conversation.postings import Rows
    from dualtrack.tools.conversation.settings import ConversationSearch
    from dualtrack.tools.running import Running

_KEPT_AT_ONCE: Final = 48
"""Maximum segments in a transaction, which may have 100 actions and 4 MB."""


@dataclass(frozen=True, slots=True)
class Index:
    """The segments to search. ``kept``: keys of the stored ones, whose vectors may be stored too.

    ``through``: the last query in the segments. ``last``: the last query of the conversation.
    """

    segments: tuple[Segment, ...]
    kept: frozenset[str]
    through: int
    last: int

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The distinct passages: a search that failed between two writes may have stored a query in part."""
        by_id = {passage.record_id: passage for segment in self.segments for passage in segment.passages}
        return tuple(by_id.values())


def up_to_date(stores: SearchStores, running: Running, settings: ConversationSearch) -> Index:
    """The index of all queries before the running one, within the limits of the settings.

    All their summaries exist: the first turn of the running query ensures it (`query_state`).
    """
    user, conversation_id, last = running.user, running.conversation_id, running.chat.query - 1
    stores = stores.across(running.chat.ancestry)
    kept = stores.search_index.segments(user, conversation_id)
    keys = frozenset(segment.key for segment in kept)
    through = max((segment.through for segment in kept), default=0)
    if through >= last:
        return Index(kept, keys, through, last)
    end = min(last, through + settings.queries)
    tracks = stores.history.tracks_between(user, conversation_id, through, end + 1)
    words: dict[str, Rows] = {}
    queries = range(through + 1, end + 1)
    read = list(_passages(stores, running, queries, tracks, settings.read_seconds, words))
    fresh = tuple(
        replace(segment, words=pack([words[passage.record_id] for passage in segment.passages]))
        for segment in segments_of(read)
    )
    keys |= {segment.key for segment in _kept(stores, running, fresh)}
    return Index((*kept, *fresh), keys, max((number for number, _ in read), default=end), last)


def _passages(
    stores: SearchStores,
    running: Running,
    queries: range,
    tracks: Mapping[int, QueryTrack],
    seconds: float,
    words: dict[str, Rows],
) -> Iterator[tuple[int, Sequence[Passage]]]:
    """The passages of each query, of at least one query, until time or room runs out; their records' ``words`` are
    added by id."""
    room, until, counted = PASSAGES_READ, time.monotonic() + seconds, Counted()
    user, conversation_id = running.user, running.conversation_id
    for records in stores.history.heads(
        user, conversation_id, queries.start - 1, queries.stop, RECORD_LIMIT + 1
    ):
        number = int(records[0].record_id.partition("-")[0][1:])
        passages = passages_of(records, tracks.get(number))
        texts = {record.record_id: record.content for record in records}
        for passage in passages:
            parts = [(PASSAGE, passage.text), *windows(passage, texts[passage.record_id])]
            words[passage.record_id] = counted.rows(parts)
        yield number, passages
        room -= len(passages)
        if room <= 0 or time.monotonic() > until:
            return


def _kept(stores: SearchStores, running: Running, fresh: Iterable[Segment]) -> Iterator[Segment]:
    """Store the segments and yield the stored ones. Stops at a segment that another search stored first, maybe with
    fewer passages."""
    rest = iter(fresh)
    while batch := list(itertools.islice(rest, _KEPT_AT_ONCE)):
        writes = [
            write
            for segment in batch
            for write in stores.search_index.segment_writes(running.user, running.conversation_id, segment)
        ]
        if not keep(stores, running, writes):
            return
        yield from batch


def keep(stores: SearchStores, running: Running, writes: Sequence[Write]) -> bool:
    """Store the writes. Returns whether they were stored; if not, the next search computes them again."""
    try:
        write_past(stores, running.chat, writes)
    except (ChatClosed, Contended, Lost):
        return False
    return True
