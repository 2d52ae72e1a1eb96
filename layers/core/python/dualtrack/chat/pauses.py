"""A chat's pause as a value: how it begins, goes on and ends. Pure.

running ──begins──► paused ──over──► running in its next execution, behind the turn `entry`, or cancelled
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.clock import iso
from dualtrack.models.receipt_data import EndedPause
from dualtrack.storage.chats import Pause, calls_to_run

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.vocabulary import DecidedBy

MAX_OF_CHAT: Final = 10
"""Pauses of a chat."""

MAX_OF_USER: Final = 20
"""Paused chats of a user."""

MAX_OF_ACCOUNT: Final = 100
"""Paused chats of an account, with all users whom it pays for."""


PEOPLE_SECONDS: Final = 7 * 86_400
CLIENT_SECONDS: Final = 3600
"""How long a chat waits whose profile does not say: for people, or for its client alone."""


def paused(chat: Chat, turn: RecordedTurn, seconds: int, now: float) -> Chat:
    """The chat once it waits for the open calls of its last turn; ``seconds``: as its profile says, or 0."""
    waiting = [call for call in turn.calls if call.is_open]
    by_itself = all(call.asks == "client_tool" for call in waiting)
    until = int(now) + (seconds or (CLIENT_SECONDS if by_itself else PEOPLE_SECONDS))
    pause = Pause(turn.number, int(now), until, len(waiting))
    return replace(chat, status="paused", deadline=until, pause=pause, pauses=chat.pauses + 1)


def resumed(chat: Chat, turn: RecordedTurn, by: DecidedBy, now: float) -> Chat:
    """The chat once every call of the ``turn`` is decided: its next execution enters where the last one ended, before
    the calls that may run now, if there are any."""
    if chat.pause is None:
        raise ValueError(chat.chat_id)
    entry = turn.number - 1 if calls_to_run(turn) else turn.number
    pause = replace(chat.pause, entry=entry)
    return replace(
        pause_over(chat, by, now),
        status="running",
        deadline=int(now) + chat.times.chat,
        execution=chat.execution + 1,
        pause=pause,
    )


def pause_over(chat: Chat, by: DecidedBy | Literal["cancelled"], now: float) -> Chat:
    """The chat with its pause among those that are over, for the receipt."""
    if chat.pause is None:
        raise ValueError(chat.chat_id)
    pause = chat.pause
    ended = EndedPause(pause.turn, iso(pause.since), pause.calls, int(now) - pause.since, by)
    return replace(chat, spent=replace(chat.spent, pauses=(*chat.spent.pauses, ended)))
