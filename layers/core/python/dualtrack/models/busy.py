"""Busy models: which errors mean that a model is busy, and how long a chat waits for it (CONTRACT 7). Pure.

    busy         429, 529; an error event of their types inside a stream; any temporary error with ``retry-after``
    not busy     other 5xx, a timeout, an interrupted stream, no connection (so that a wrong URL is reported within
                 seconds): the workflow retries these a few times

Waits grow from try to try and are random (decorrelated jitter: AWS Architecture Blog, "Exponential Backoff And
Jitter"), so that chats that were refused together do not retry together. A ``retry-after`` of the service is the
minimum, and the random part is added to it.
"""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.clock import epoch_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.events import StoredEvent

Reason = Literal["overloaded", "rate_limited", "unavailable"]

FIRST_SECONDS: Final = 4.0
LONGEST_SECONDS: Final = 30.0
"""Bounds of the random wait; a service may ask for a longer one."""

_HEADER_LENGTH: Final = 64
_BY_STATUS: Final[Mapping[int, Reason]] = {
    429: "rate_limited",
    529: "overloaded",
}
_BY_TYPE: Final[Mapping[str, Reason]] = {
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
}
"""Error types of the Messages API: inside a stream, the status is always 200."""


def busy_reason(status: int, kind: str, asked: float | None) -> Reason | None:
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


def seconds_to_wait(asked: float, before: float, left: float, draw: float) -> int:
    """Whole seconds until the next try, at least 1; 0 if there is no time left to wait.

    ``asked``: by the service, 0 for none; ``before``: the wait before this try; ``left``: the seconds in which a turn
    may still begin without having to be the chat's last; ``draw``: a random number from 0 to 1.
    """
    if left < 1:
        return 0
    step = min(LONGEST_SECONDS, max(FIRST_SECONDS, 2 * before))
    wish = asked + draw * step / 2 if asked else (1 + draw) * step / 2
    return max(1, math.ceil(min(wish, left)))


def waited_before(newest: StoredEvent, turn: int) -> int:
    """The seconds waited before this try of the turn; 0 for none."""
    if newest.event != "retrying" or newest.data["turn"] != turn:
        return 0
    return int(newest.data["seconds"])


def still_to_wait(newest: StoredEvent, turn: int, now: float) -> int:
    """Whole seconds left of a wait that was announced for the turn; 0 for none.

    So a retry of a step whose outcome was lost neither calls the model again nor announces a second wait.
    """
    announced = waited_before(newest, turn)
    left = epoch_of(newest.data["at"]) + announced - now if announced else 0.0
    return min(math.ceil(left), announced) if left >= 1 else 0
