"""Reading the files of a project, whatever lies there under their names."""

from __future__ import annotations

import errno
import os
from stat import S_ISREG
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def read_plain(path: Path, most: int) -> bytes:
    """The file's first ``most`` bytes. Raises OSError for what is no plain file: a pipe would be waited for, and a
    device may have no end."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        return file.read(most)
