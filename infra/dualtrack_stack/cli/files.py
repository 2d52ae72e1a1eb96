"""Files for a message, read and checked before the chat starts, with the API's rules."""

from __future__ import annotations

import base64
import json
import mimetypes
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.media import MAX_SENT_BYTES, refusal, signed_as
from dualtrack.message_files import MAX_FILES, UPLOADED_BYTES, as_utf8, is_text_type, not_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TYPES: Final = mimetypes.MimeTypes()
"""By file extension, the same on every machine: the system's own lists are not read."""
for _kind, _end in (("text/markdown", ".md"), ("application/toml", ".toml"), ("application/yaml", ".yaml")):
    _TYPES.add_type(_kind, _end)


STDIN: Final = Path("-")
"""Standard input, as a path."""

_STDIN: Final = "Standard input"
_PIPED: Final = "stdin.txt"
_TOO_LARGE: Final = "too large; the files of a message may have 50 MB in total."
_TOO_MANY_VIEWABLE: Final = "too large; images and PDFs of a message may have 15 MB in total."


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


def read_files(paths: Sequence[Path], piped: bytes = b"") -> tuple[LocalFile, ...]:
    """The files in order, and piped text as the last; raises `BadFile` for the first that cannot be sent."""
    number = len(paths) + bool(piped)
    if number > MAX_FILES:
        raise BadFile(f"A message takes at most {MAX_FILES} files, not {number}.")
    free = UPLOADED_BYTES - len(piped)
    viewable = MAX_SENT_BYTES
    files: list[LocalFile] = []
    for path in paths:
        file = _read(path, free)
        free -= len(file.data)
        viewable -= 0 if is_text_type(file.media_type) else len(file.data)
        if viewable < 0:
            raise BadFile(f"{path}: {_TOO_MANY_VIEWABLE}")
        files.append(file)
    return (*files, *((LocalFile(_PIPED, "text/plain", piped),) if piped else ()))


def read_schema(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises `BadFile`. The API says whether it is a schema that it takes."""
    try:
        schema = json.loads(path.read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise BadFile(f"{path} is not JSON.") from None
    if not isinstance(schema, dict):
        raise BadFile(f"{path} is no JSON Schema: it must be an object.")
    return schema


def piped_text(data: bytes) -> str:
    """Piped bytes as text; raises `BadFile` if they are none, or too many."""
    if len(data) > UPLOADED_BYTES:
        raise BadFile(f"{_STDIN}: {_TOO_LARGE}")
    data = as_utf8(data)
    if problem := not_text(data):
        raise BadFile(f"{_STDIN} is no text: {problem}. Send an image or a PDF with --file.")
    return data.decode()


def _read(path: Path, free: int) -> LocalFile:
    is_stdin = path == STDIN
    name = _STDIN if is_stdin else str(path)
    try:
        with nullcontext(sys.stdin.buffer) if is_stdin else path.open("rb") as file:
            data = file.read(free + 1)
    except OSError as error:
        raise BadFile(f"{name}: {(error.strerror or str(error)).lower()}.") from error
    if len(data) > free:
        raise BadFile(f"{name}: {_TOO_LARGE}")
    data = data if signed_as(data) else as_utf8(data)
    media_type = _media_type(name, data)
    kind = media_type.partition("/")[2]
    return LocalFile(
        (_PIPED if kind == "plain" else f"stdin.{kind}") if is_stdin else path.name, media_type, data
    )


def _media_type(name: str, data: bytes) -> str:
    """By its content: an image or a PDF by its first bytes, else text, whose type is by its name."""
    if viewable := signed_as(data):
        if problem := refusal(viewable, data):
            raise BadFile(f"{name}: {problem}.")
        return viewable
    if problem := not_text(data):
        raise BadFile(f"{name}: neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text: {problem}.")
    guessed = _TYPES.guess_type(name)[0] or ""
    return guessed if is_text_type(guessed) else "text/plain"
