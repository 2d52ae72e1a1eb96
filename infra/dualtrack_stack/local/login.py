"""This machine's user, as a user of the local stack (CONTRACT 8)."""

from __future__ import annotations

import getpass
import re
from typing import Final

_NOT_IN_NAMES: Final = re.compile(r"[^\w.@+-]", re.ASCII)


def login_name() -> str:
    """The login name, with ``-`` for characters that the pool refuses; ``me`` without a login name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name for this uid
        name = ""
    return _NOT_IN_NAMES.sub("-", name)[:64] or "me"
