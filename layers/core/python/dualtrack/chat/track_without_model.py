"""The track of a query as it is written where no model is asked: at the end of a chat without an answer, by the sweep,
by a fork. Notes that its turns brought are in it (CONTRACT 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.memory.summaries import track_of
from dualtrack.profiles import all_profiles, whole_characters
from dualtrack.storage.chats import notes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.memory.records import QueryTrack, Record
    from dualtrack.storage.chats import RecordedTurn


def track_without_model(
    profile: str,
    records: tuple[Record, ...],
    ended: Callable[[], tuple[bool, Sequence[RecordedTurn]]],
    now: str,
) -> QueryTrack:
    """``ended``: whether the query's chat calls for summaries, and the turns, which may have brought notes if not; read
    only where a profile has a track."""
    known, whole = all_profiles().get(profile), whole_characters(profile)
    if known and known.history.is_summarised:
        calls_for_summaries, turns = ended()
        if not calls_for_summaries:
            return track_of(records, notes_of(turns), whole, now, "note")
    return track_of(records, {}, whole, now)
