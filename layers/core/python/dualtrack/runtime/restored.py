"""What a process does anew when Lambda SnapStart restores it: all that come from one snapshot begin alike.

A snapshot is taken when a handler's module is imported. Keys are not in it, because no handler reads one before it is
called, and ids come from the operating system; the jitter of retries comes from `random`, whose state is in it (AWS
Lambda Developer Guide, "Handling uniqueness with Lambda SnapStart").
"""

from __future__ import annotations

import random


def seed_anew_when_restored() -> None:
    """Restored processes that are refused at once do not come again at once."""
    try:
        # Lambda's Python runtime has it, and nothing else
        from snapshot_restore_py import register_after_restore  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        return
    register_after_restore(random.seed)
