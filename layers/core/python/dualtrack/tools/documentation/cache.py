"""The search's cache, shared by all users: public documentation and vectors.

Keys are hashes, so no question can be read from the table. ``response#…`` is a Context7 body, ``embedding#…`` a vector
(raw float32), and ``plan#…`` the library and the response keys of a question, without its words.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Final

from dualtrack.tools.documentation.context7 import FetchedPage

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_PLAIN: Final = 16_000_000


def response_key(address: str, path: str, params: Mapping[str, str]) -> str:
    """Key of a Context7 answer: the server's address, the path and every parameter."""
    return _key("response", address, path, *(f"{name}={params[name]}" for name in sorted(params)))


def embedding_key(model: str, input_type: str, text: str) -> str:
    """Key of a vector: the model, the type of input and the exact text."""
    return _key("embedding", model, input_type, text)


def plan_key(*parts: str) -> str:
    """Key of the plan for a question."""
    return _key("plan", *parts)


def packed_page(page: FetchedPage) -> bytes:
    """A page, compressed."""
    return zlib.compress((b"j" if page.is_json else b"t") + page.text.encode())


def unpacked_page(body: bytes) -> FetchedPage | None:
    """The page from its bytes; None if they are invalid (an older or damaged entry)."""
    plain = inflated(body)
    return FetchedPage(plain[1:].decode(errors="replace"), plain[:1] == b"j") if plain else None


def inflated(body: bytes) -> bytes:
    """What was compressed, bounded; empty if it is damaged."""
    try:
        return zlib.decompressobj().decompress(body, _MAX_PLAIN)
    except zlib.error:
        return b""


def _key(kind: str, *parts: str) -> str:
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{kind}#{digest}"
