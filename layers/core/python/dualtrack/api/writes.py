"""Limits what is written while release 1 may still have to read it (DESIGN 9: readers before writers).

Steps of release 1 fail on records of text files, on profiles that it does not have, and on forks. A deployment that
may be rolled back to it sets ``writes = 1`` (docs/releases.md; tests/property/test_mixed_releases.py shows what it
reads). All of these begin with a request, so only the API checks the setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.errors import invalid_request
from dualtrack.message_files import is_text_type
from dualtrack.profiles import DEFAULT_PROFILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.attached_files import File

EVERYTHING: Final = 2
"""The first release that can read all of it."""


def writes_from(text: str) -> int:
    """``DUALTRACK_WRITES``; everything if it is not set. Raises ValueError for an unknown release."""
    writes = int(text or EVERYTHING)
    if not 1 <= writes <= EVERYTHING:
        raise ValueError(f"must be from 1 to {EVERYTHING}, not {writes}")
    return writes


def refuse_unreadable(
    writes: int, *, profile: str = "", files: Sequence[File] = (), is_fork: bool = False
) -> None:
    """Raises 400 for a request whose data the release ``writes`` could not read."""
    if writes >= EVERYTHING:
        return
    if is_fork:
        raise _not_yet("Forks are")
    if profile and profile != DEFAULT_PROFILE:
        raise _not_yet(f"The profile {profile} is")
    if any(is_text_type(file.media_type) for file in files):
        raise _not_yet("Text files are")


def _not_yet(what: str) -> Exception:
    return invalid_request(f"{what} not available until the new release is complete. Try again later.")
