"""Files for a message, read and checked before the chat starts, with the API's rules."""

from __future__ import annotations

import base64
import mimetypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.media import VIEWABLE, refusal
from dualtrack.message_files import FILES_BYTES, MAX_FILES, is_text_type, not_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TYPES: Final = mimetypes.MimeTypes()
"""By file extension, the same on every machine: the system's own lists are not read."""
for _kind, _end in (("text/markdown", ".md"), ("application/toml", ".toml"), ("application/yaml", ".yaml")):
    _TYPES.add_type(_kind, _end)


class BadFile(Exception):
    """Why a file cannot be sent, with its path."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that the API accepts."""

    name: str
    media_type: str
    data: bytes

    @property
    def body(self) -> Mapping[str, str]:
        """As POST /v1/chats takes it."""
        data = base64.b64encode(self.data).decode()
        return {"name": self.name, "media_type": self.media_type, "data": data}


def read_files(paths: Sequence[Path]) -> tuple[LocalFile, ...]:
    """The files in order; raises `BadFile` for the first that cannot be sent."""
    if len(paths) > MAX_FILES:
        raise BadFile(f"A message takes at most {MAX_FILES} files, not {len(paths)}.")
    free = FILES_BYTES
    files: list[LocalFile] = []
    for path in paths:
        files.append(_read(path, free))
        free -= len(files[-1].data)
    return tuple(files)


def _read(path: Path, free: int) -> LocalFile:
    try:
        with path.open("rb") as file:
            data = file.read(free + 1)
    except OSError as error:
        raise BadFile(f"{path}: {(error.strerror or str(error)).lower()}.") from error
    if len(data) > free:
        raise BadFile(f"{path}: too large; the files of a message may have 4 MB in total.")
    return LocalFile(path.name, _media_type(path, data), data)


def _media_type(path: Path, data: bytes) -> str:
    """By its content: an image or a PDF by its first bytes, else text, whose type is by its name."""
    viewable = [media_type for media_type in sorted(VIEWABLE) if not refusal(media_type, data)]
    if viewable:
        return viewable[0]
    if problem := not_text(data):
        raise BadFile(f"{path}: neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text: {problem}.")
    guessed = _TYPES.guess_type(path.name)[0] or ""
    return guessed if is_text_type(guessed) else "text/plain"
