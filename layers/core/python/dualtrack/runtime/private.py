"""A process whose memory and environment its own children cannot read."""

from __future__ import annotations

import ctypes
from typing import Final

_PR_SET_DUMPABLE: Final = 4
"""prctl(2): with 0 the files of ``/proc/<pid>`` belong to root, and no process of the same user may attach to it."""


def keep_private() -> None:
    """Make this process not dumpable. A child is dumpable again as soon as it runs another program."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
