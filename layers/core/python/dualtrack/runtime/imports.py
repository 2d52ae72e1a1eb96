"""How a handler is imported: without garbage collection, and so that a snapshot can restore it (DESIGN 2.13)."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

from dualtrack.runtime.restored import reseed_when_restored

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def collecting_later() -> Iterator[None]:
    """Garbage collection is off inside the block; later collections skip what was imported in it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
    reseed_when_restored()
