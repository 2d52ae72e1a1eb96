"""Zips of hostile size: nothing is unpacked that has not been measured by its directory first."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import IO, Final

from dualtrack.plugins.knowledge.documents import DocumentRefused
from dualtrack.plugins.knowledge.reading.limits import MAX_PART, MAX_PARTS, MAX_UNPACKED

BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError,
)  # fmt: skip
"""What `zipfile` raises for a part that is damaged, locked or packed in an unknown way."""


class Archive:
    """A zip's parts by their names; `zipfile` never unpacks more of a part than its directory says."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise DocumentRefused("is damaged: it is cut off. Send it again") from error
        self._parts = {
            part.filename.replace("\\", "/").lstrip("/").lower(): part for part in self._zip.infolist()
        }
        self._left = MAX_UNPACKED
        if len(self._parts) > MAX_PARTS:
            raise DocumentRefused(f"has {len(self._parts):,} parts; at most {MAX_PARTS:,} are taken")

    def names(self) -> tuple[str, ...]:
        """In lower case, as Office compares them."""
        return tuple(self._parts)

    def part(self, name: str) -> bytes | None:
        """What a part has; None if it is missing or damaged. Raises `DocumentRefused`."""
        entry = self._measured(name)
        if entry is None:
            return None
        try:
            return self._zip.read(entry)
        except BROKEN:
            return None

    def stream(self, name: str) -> IO[bytes] | None:
        """A part to be unpacked as it is read. Raises `DocumentRefused`."""
        entry = self._measured(name)
        try:
            return self._zip.open(entry) if entry else None
        except BROKEN:
            return None

    def _measured(self, name: str) -> zipfile.ZipInfo | None:
        entry = self._parts.get(name.lower())
        if entry is None:
            return None
        self._left -= entry.file_size
        if entry.file_size > MAX_PART or self._left < 0:
            raise DocumentRefused(
                f"unpacks to more than {MAX_PART / 1e6:.0f} MB in one part or {MAX_UNPACKED / 1e6:.0f} MB in all: "
                "divide it"
            )
        return entry
