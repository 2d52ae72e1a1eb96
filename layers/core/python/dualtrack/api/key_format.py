"""The text of an API key: ``dt_`` + id (16) + secret (32) + checksum (6), in base62.

The checksum (CRC-32) tells a mistyped key, and junk, from a key without a read. It is no secret: whoever computes it
has still to guess 190 bits. Only the SHA-256 of the whole text is stored: the secret is random, so it needs no salt and
no slow hash. Nothing here imports cryptography: `api` loads this module.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from typing import Final

from dualtrack.ids import KEY_ID_PREFIX

PREFIX: Final = "dt_"

_BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID: Final = 16
_SECRET: Final = 32
_CHECKSUM: Final = 6
"""62**6 > 2**32"""
_FORM: Final = re.compile(
    rf"{PREFIX}([0-9A-Za-z]{{{_ID}}})[0-9A-Za-z]{{{_SECRET}}}([0-9A-Za-z]{{{_CHECKSUM}}})"
)
_LENGTH: Final = len(PREFIX) + _ID + _SECRET + _CHECKSUM


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """A key as it was sent, well-formed: its id, and the SHA-256 of its text in hex."""

    key_id: str
    digest: str


def new_key_id() -> str:
    """``key_`` + 16 random characters (95 bits)."""
    return KEY_ID_PREFIX + _random(_ID)


def new_key(key_id: str) -> str:
    """A new key with this id and a new secret: shown once, never stored."""
    body = f"{PREFIX}{key_id.removeprefix(KEY_ID_PREFIX)}{_random(_SECRET)}"
    return body + _checksum(body)


def is_key(token: str) -> bool:
    """Whether a bearer token means to be a key: it is then never taken for another kind of token."""
    return token.startswith(PREFIX)


def parse_key(token: str) -> PresentedKey | None:
    """The key; None for a text that cannot be one."""
    if len(token) != _LENGTH or not (match := _FORM.fullmatch(token)):
        return None
    if _checksum(token[:-_CHECKSUM]) != match[2]:
        return None
    return PresentedKey(KEY_ID_PREFIX + match[1], digest_of(token))


def digest_of(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def _random(length: int) -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECKSUM):
        number, rest = divmod(number, len(_BASE62))
        digits = _BASE62[rest] + digits
    return digits
