"""What may be written while release 1 may still have to read it (DESIGN 9: readers before writers).

Release 1's steps fail at a text file's record, at a profile that it has not got, and at a fork; a deploy that may have
to go back to it is made with ``writes = 1`` (docs/releases.md; tests/property/test_mixed_releases.py has what
it reads). Each of these begins with a request, so the API is the only place that asks.
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
"""The release from which on all of it can be read."""


def writes_from(text: str) -> int:
    """``DUALTRACK_WRITES``, everything where it is not set. Raises ValueError for a release that there is not."""
    writes = int(text or EVERYTHING)
    if not 1 <= writes <= EVERYTHING:
        raise ValueError(f"must be from 1 to {EVERYTHING}, not {writes}")
    return writes


def refuse_unreadable(
    writes: int, *, profile: str = "", files: Sequence[File] = (), is_fork: bool = False
) -> None:
    """Raises 400 for what the release ``writes`` could not go on with."""
    if writes >= EVERYTHING:
        return
    if is_fork:
        raise _not_yet("Forks are")
    if profile and profile != DEFAULT_PROFILE:
        raise _not_yet(f"The profile {profile} is")
    if any(is_text_type(one.media_type) for one in files):
        raise _not_yet("Text files are")


def _not_yet(what: str) -> Exception:
    return invalid_request(f"{what} not offered while a new release is on its way. Try again later.")
