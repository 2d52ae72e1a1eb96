"""Reading the files of a project, whatever lies there under their names."""

from __future__ import annotations

import errno
import os
from stat import S_ISREG
from typing import TYPE_CHECKING

from dualtrack_stack.project.model import BadProject

if TYPE_CHECKING:
    from pathlib import Path


def read_plain(path: Path, most: int) -> bytes:
    """The file's first ``most`` bytes. Raises OSError for what is no plain file: a pipe would be waited for, and a
    device may have no end."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        return file.read(most)


def plain_text(path: Path, shown: str, most: int, instead: str) -> str:
    """The file's text, ``shown`` by this name; ``instead``: what to write of one that is larger than ``most`` bytes.
    Raises `BadProject` for what cannot be read, and FileNotFoundError."""
    try:
        data = read_plain(path, most + 1)
        if len(data) > most:
            raise BadProject(f"{shown}:1: it is larger than {most:,} bytes: {instead}")
        return data.decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadProject(f"{shown}:{line}: this is not UTF-8: save the file in that encoding") from None
    except OSError as error:
        raise BadProject(f"{shown}:1: it cannot be read: {error.strerror}") from None
