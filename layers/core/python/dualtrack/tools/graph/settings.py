"""Which engine reads the graph, and where it is (``DUALTRACK_GRAPH_ENGINE``, ``DUALTRACK_GRAPH_URL``)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

LADYBUG: Final = "ladybug"
BOLT: Final = "bolt"
ENGINES: Final = (LADYBUG, BOLT)

DEFAULT_USER: Final = "neo4j"

_ENCRYPTED: Final = ("bolt+s", "neo4j+s")
_PLAIN: Final = ("bolt", "neo4j")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def engine_from(given: str) -> str:
    """The engine's name, `LADYBUG` for an empty one. Raises ValueError for one that is not there."""
    engine = given or LADYBUG
    if engine not in ENGINES:
        raise ValueError(f"{engine} is none of {', '.join(ENGINES)}")
    return engine


def address_from(engine: str, given: str) -> str:
    """The server's address; empty where the engine needs none. Raises ValueError for one that Bolt must not
    be spoken to: a password is sent there, so it is encrypted, with a certificate that is checked, or does
    not leave the machine.
    """
    if not given and engine != BOLT:
        return ""
    parts = urlsplit(given)
    if not parts.hostname or parts.scheme not in _ENCRYPTED + _PLAIN:
        raise ValueError(f"must be an address such as neo4j+s://graph.example.org ({', '.join(_ENCRYPTED)})")
    if parts.username or parts.password:
        raise ValueError("no user and no password stand in the address")
    if parts.scheme in _PLAIN and parts.hostname not in _LOOPBACK:
        raise ValueError(f"{parts.scheme}:// is for this machine alone: use {parts.scheme}+s://")
    return given
