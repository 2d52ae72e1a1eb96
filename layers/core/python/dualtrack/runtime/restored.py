"""What a process does when Lambda SnapStart restores it: all processes of one snapshot begin in the same state.

A snapshot is taken after a handler's module is imported. It has no keys, because handlers read them only when
called, and ids come from the operating system. But the jitter of retries comes from `random`, whose state is in the
snapshot (AWS Lambda Developer Guide, "Handling uniqueness with Lambda SnapStart").
"""

from __future__ import annotations

import random


def reseed_when_restored() -> None:
    """Seed `random` on restore, so that processes throttled at the same time do not retry at the same time."""
    try:
        # only Lambda's Python runtime has this module
        from snapshot_restore_py import register_after_restore  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        return
    register_after_restore(random.seed)
