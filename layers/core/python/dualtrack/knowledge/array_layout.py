"""Where the parts of an object of arrays are (`dualtrack.knowledge.array_file`), for whoever reads a part of it."""

from __future__ import annotations

from typing import Final

HEADER: Final = 12
"""Where the header begins; the four bytes before it are its length."""
ALIGNED: Final = 64
"""Header and arrays are filled up to a multiple of it."""


def padded(size: int) -> int:
    """The next multiple of `ALIGNED`."""
    return -(-size // ALIGNED) * ALIGNED


def arrays_begin(header: int) -> int:
    """Where the arrays begin, whose offsets count from there, behind a header of this length."""
    return padded(HEADER + header)
