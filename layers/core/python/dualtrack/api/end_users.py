"""End users of a service: whose data a request of the service's key is about (CONTRACT 3). Pure.

The service names one in a header, `HEADER` or one that a stage's setting adds. A header is ASCII, so other characters
are written as in a URL: ``M%C3%BCller``. The name is that text in Unicode's form NFC: two ways to write the same
letters are one user. Letters that only look alike are two. What cannot be seen is refused, and so is what would lead
elsewhere in a path: a service may pass on what its users call themselves.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from dualtrack.errors import invalid_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HEADER: Final = "X-Dualtrack-User"
NAME_CHARACTERS: Final = 256
PREFIX: Final = "s_"
"""Of the ids of end users; those of the user pool are UUIDs."""

_LONGEST_SENT: Final = NAME_CHARACTERS * 12
"""Four bytes of UTF-8 a character, three characters of the header a byte."""
_ESCAPED: Final = re.compile(r"(?:[ !-$&-~]|%[0-9A-Fa-f]{2})*")
_NOT_IN_NAMES: Final = frozenset("/\\%")
_NAMELESS: Final = frozenset({".", ".."})


def named_in(values_of: Callable[[str], Sequence[str]], headers: Iterable[str]) -> str | None:
    """The end user whom a request names; None if it names nobody. Raises 400 for a name that is not valid, and for two.

    ``values_of``: the values of a request's header.
    """
    sent = {value for header in headers for value in values_of(header)}
    if not sent:
        return None
    if len(sent) > 1:
        raise invalid_request(f"{HEADER}: one request names one user.")
    (text,) = sent
    if len(text) > _LONGEST_SENT or not _ESCAPED.fullmatch(text):
        raise invalid_request(f"{HEADER}: write what is not ASCII as in a URL, M%C3%BCller.")
    return written_name(text)


def written_name(text: str) -> str:
    """The name in form NFC, from a header or a part of a path: some gateways have decoded a path and others have not,
    so no name has a ``%``. Raises 400 unless it has 1 to 256 visible characters, spaces inside it and no slash."""
    try:
        text = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise invalid_request(f"{HEADER}: its bytes are not UTF-8.") from None
    # the form of a long text takes time: NFC has at most a quarter of its characters
    name = unicodedata.normalize("NFC", text).strip() if len(text) <= 4 * NAME_CHARACTERS else ""
    if not 1 <= len(name) <= NAME_CHARACTERS:
        raise invalid_request(f"{HEADER}: a name has 1 to {NAME_CHARACTERS} characters.")
    if not name.isprintable() or set(name) & _NOT_IN_NAMES or name in _NAMELESS:
        raise invalid_request(
            f"{HEADER}: a name has visible characters, without / \\ and %, and is not a dot or two."
        )
    return name


def end_user_id(owner: str, name: str) -> str:
    """``s_`` and the SHA-256 of both: the same name under two owners is two users."""
    return PREFIX + hashlib.sha256(f"{owner}\n{name}".encode()).hexdigest()
