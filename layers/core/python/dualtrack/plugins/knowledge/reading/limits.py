"""What a file may have, and what its reading may take."""

from __future__ import annotations

from typing import Final

from dualtrack.runtime.bounded_process import Limits

MAX_BYTES: Final = 100_000_000

LIMITS: Final = Limits(seconds=120, memory=2_500_000_000)
"""A PDF of 1,000 pages needs a fifth of a gigabyte, a spreadsheet of 100 MB with a million cells one."""

MAX_UNPACKED: Final = 1_000_000_000
"""Bytes of all parts of an archive, unpacked; a part is unpacked only where it is read."""

MAX_PART: Final = 300_000_000
"""Bytes of one part, unpacked."""

MAX_PARTS: Final = 20_000
