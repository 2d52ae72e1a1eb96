"""Time limits: for work that checks the time, and for work that cannot be interrupted (its thread is abandoned)."""

from __future__ import annotations

import threading
import time
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from dualtrack.errors import TookTooLong

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def time_for(seconds: float) -> Callable[[], bool]:
    """A function that says whether there is time left, for work that checks it between its steps."""
    ends = time.monotonic() + seconds
    return lambda: time.monotonic() < ends


def within(seconds: float, work: Callable[[], T], name: str) -> T:
    """Return or raise what the work does. Raises `TookTooLong` after ``seconds``.

    Abandoned work continues while its process lives, so it must be harmless if it finishes late.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise TookTooLong(name, seconds)
    return returned[0]
