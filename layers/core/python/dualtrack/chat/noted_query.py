"""An ended query whose answer brought its notes: its track, and its messages where they are sent on as they are
(CONTRACT 6). Every writer of it makes the same, since all of it is recorded with the turns: the step after the answer,
or the next query if it comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.chat.keep_whole import kept
from dualtrack.chat.message_before import with_last_sent
from dualtrack.memory.summaries import track_of
from dualtrack.storage.chats import notes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.records import QueryTrack, Record
    from dualtrack.profiles import Profile
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.stores import ToolStores


def noted_query(
    stores: ToolStores,
    chat: Chat,
    turns: Sequence[RecordedTurn],
    profile: Profile,
    records: tuple[Record, ...],
    now: str,
) -> tuple[QueryTrack, list[Write]]:
    """The track of an answered chat, and what is written with it. Raises `Gone`.

    A query of which nothing is shortened is sent on in the very bytes in which it was sent, so that they stay a cached
    prefix; but not one that has read the past back, which would be sent for good. One that was a single message without
    an ask is that already by its track.
    """
    track = track_of(records, notes_of(turns), profile.history.whole_characters, now, "note")
    if len(turns) == 1 and not turns[0].sending.asked:
        return with_last_sent(track, chat, records), []
    is_reading_back = any(record.call and record.call.reference for record in records)
    if is_reading_back or any(block.size for block in track.blocks):
        return track, []
    own = kept(stores, chat, turns, profile, records)
    if not own.whole.messages:
        return track, []
    return with_last_sent(own.on(track), chat, records), own.writes(stores.history, chat, chat.query)
