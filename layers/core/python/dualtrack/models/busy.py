"""Busy models: which errors mean that a model is busy, and how long a chat waits for it (CONTRACT 7). Pure.

    busy         429, 529; an error event of their types inside a stream; any temporary error with ``retry-after``
    not busy     other 5xx, a timeout, an interrupted stream, no connection (so that a wrong URL is reported within
                 seconds): the workflow retries these a few times

The step doubles with each try, whatever the service asks for, and a wait is random between half a step and a whole
one ("equal jitter": AWS Architecture Blog, "Exponential Backoff And Jitter"), so that chats that were refused together
do not retry together. A ``retry-after`` is the minimum, with the random part added to it. No wait is longer than a
minute unless the service asks for that.

    try             1      2      3       4        5 and later
    seconds     2 to 4  4 to 8  8 to 16  16 to 32  30 to 60
"""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from dualtrack.clock import epoch_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.events import StoredEvent
    from dualtrack.vocabulary import BusyReason

FIRST_SECONDS: Final = 4.0
LONGEST_SECONDS: Final = 60.0
"""The first step and the last; a service may ask for a longer wait."""

OVERTIME_SECONDS: Final = 60.0
"""How long after minute 11 a ``retry-after`` may end: the call that follows it still has its time. A service that asks
for more is not waited for."""

_STEPS: Final = 5
"""Tries after which the step no longer grows."""
_SPREAD: Final = 10
"""The random part of a wait of a minute or more that the service asks for: at most a tenth."""

_HEADER_LENGTH: Final = 64
_BY_STATUS: Final[Mapping[int, BusyReason]] = {
    429: "rate_limited",
    529: "overloaded",
}
_BY_TYPE: Final[Mapping[str, BusyReason]] = {
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
}
"""Error types of the Messages API: inside a stream, the status is always 200."""


def busy_reason(status: int, kind: str, asked: float | None) -> BusyReason | None:
    """Why the service is busy, from a temporary error; None if it is not.

    ``kind``: the error's type; ``asked``: the seconds of ``retry-after``, if it was sent.
    """
    return _BY_STATUS.get(status) or _BY_TYPE.get(kind) or (None if asked is None else "unavailable")


def asked_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds in ``retry-after-ms`` or ``retry-after`` (a number, or a date: RFC 9110, 10.2.3)."""
    text = headers.get("retry-after-ms", "")
    if (seconds := _number(text)) is not None:
        return seconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    return seconds if seconds is not None else _until(text, now)


def _number(text: str) -> float | None:
    try:
        number = float(text[:_HEADER_LENGTH])
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


def _until(text: str, now: float) -> float | None:
    try:
        return max(parsedate_to_datetime(text[:_HEADER_LENGTH]).timestamp() - now, 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def seconds_to_wait(asked: float, tries: int, left: float, draw: float) -> int:
    """Whole seconds until the next try, at least 1; 0 if there is no time left to wait.

    ``asked``: by the service, 0 for none; ``tries``: of this turn so far, from 1; ``left``: the seconds in which a turn
    may still begin without having to be the chat's last; ``draw``: a random number from 0 to 1.
    """
    if left < 1 or asked > left + OVERTIME_SECONDS:
        return 0
    half = min(LONGEST_SECONDS, FIRST_SECONDS * (1 << min(tries, _STEPS) - 1)) / 2
    wish = min(max(asked, half) + draw * half, max(LONGEST_SECONDS, asked + asked / _SPREAD))
    return max(1, math.ceil(min(wish, max(left, asked))))


def still_to_wait(newest: StoredEvent, turn: int, now: float) -> int:
    """Whole seconds left of a wait that was announced for the turn; 0 for none.

    So a retry of a step whose outcome was lost neither calls the model again nor announces a second wait.
    """
    if newest.event != "retrying" or newest.data["turn"] != turn:
        return 0
    announced = int(newest.data["seconds"])
    left = epoch_of(newest.data["at"]) + announced - now
    return min(math.ceil(left), announced) if left >= 1 else 0
