"""Time limits: for work that looks at it, and for work that cannot be interrupted (a thread that is left behind)."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from dualtrack.errors import TookTooLong

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def time_for(seconds: float) -> Callable[[], bool]:
    """Says whether there is time left, for work that looks at it between its steps."""
    ends = time.monotonic() + seconds
    return lambda: time.monotonic() < ends


def within(seconds: float, work: Callable[[], T], name: str) -> T:
    """What the work returns or raises. Raises `TookTooLong` if that takes more than ``seconds``.

    Work that is left behind goes on for as long as its process lives: it must do no harm by ending late.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise TookTooLong(f"{name} took longer than {seconds:.0f} seconds.")
    return returned[0]
