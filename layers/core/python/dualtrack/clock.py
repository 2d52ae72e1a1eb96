"""Time as a value: UTC, epoch seconds inside, ISO 8601 outside."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Clock = Callable[[], float]


def system_clock() -> float:
    """Epoch seconds now."""
    return time.time()


def iso(epoch: float) -> str:
    """``2026-11-21T21:31:47.123Z``."""
    moment = datetime.fromtimestamp(epoch, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def epoch_of(text: str) -> float:
    """The epoch seconds of a text that `iso` wrote."""
    return datetime.fromisoformat(text).timestamp()


def day_of(epoch: float) -> str:
    """The UTC day, ``2026-11-21``."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d")
