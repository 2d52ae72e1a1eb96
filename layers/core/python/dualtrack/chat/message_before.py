"""Behind which message a request goes on, so that the model's service can say whether it does (CONTRACT 9). Pure.

    in a chat           the turn before, unless this one cuts what that sent, or is the last, which is cached apart
    at a query's start  the newest call of the query before, if that is sent on as it was: whole, or without tools

Nothing is read for it: the chat has its own newest message, the track of an ended query that query's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.ids import query_id
from dualtrack.memory.records import LastSent, block_of
from dualtrack.profiles import all_profiles
from dualtrack.storage.chats import Pin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.records import QueryTrack, Record
    from dualtrack.memory.view import View
    from dualtrack.storage.chats import Chat, RecordedTurn


def message_before(chat: Chat, view: View, turns: Sequence[RecordedTurn]) -> str:
    """The id of the message whose request this view's begins with; empty if there is none, or none is known."""
    if view.limit:
        return ""
    if turns:
        return chat.message if view.cuts.goes_on_from(turns[-1].sending.cuts) else ""
    newest = view.tracks[-1] if view.tracks else None
    if newest is None or newest.last is None or newest.query != chat.query - 1:
        return ""
    is_as_kept = bool(newest.whole_tokens) == (newest.query in view.whole)
    return newest.last.message if is_as_kept and newest.last.past == _past(chat, newest.query) else ""


def message_behind(chat: Chat, view: View, turns: Sequence[RecordedTurn], message: str) -> str:
    """The id of the message whose request later ones begin with, after a turn whose answer is ``message``."""
    if not view.limit:
        return message
    return chat.message if turns and view.cuts.goes_on_from(turns[-1].sending.cuts) else ""


def with_last_sent(track: QueryTrack, chat: Chat, records: Sequence[Record]) -> QueryTrack:
    """The track of an answered query with the call that sent it so: what stands in a request for its query alone is not
    sent again."""
    profile = all_profiles().get(chat.profile)
    has_schema = chat.output or profile is None or profile.output is not None
    query = next((record for record in records if record.record_id == query_id(chat.query)), None)
    if not chat.message or chat.instructed or has_schema or query is None or query.continues:
        return track
    asked = [block for block in track.blocks if block.role == "user"]
    is_sent_alike = chat.turn == 1 and asked == [block_of(query)] and not query.attachments
    if not track.whole_tokens and not is_sent_alike:
        return track
    return replace(track, last=LastSent(chat.message, _past(chat, chat.query)))


def _past(chat: Chat, query: int) -> str:
    """A name of what the chat sends before this query: the digest, the summarised queries behind it, what is left
    out."""
    pin = chat.pin or Pin()
    summarised = min(pin.whole_from - 1 if pin.whole_from else query - 1, query - 1)
    return f"{pin.digest} {summarised} {pin.left_out}"
