"""Which engine reads the graph, and where it is (``DUALTRACK_GRAPH_ENGINE``, ``DUALTRACK_GRAPH_URL``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from dualtrack.settings import Settings

LADYBUG: Final = "ladybug"
BOLT: Final = "bolt"
ENGINES: Final = (LADYBUG, BOLT)

_ENCRYPTED: Final = ("bolt+s", "neo4j+s")
_PLAIN: Final = ("bolt", "neo4j")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def checked_address(address: str, settings: Settings) -> str:
    """The server's address; empty if the engine needs none. Raises ValueError for an insecure one: a password is
    sent there, so the connection must be encrypted with a verified certificate, or must not leave the machine.
    """
    if not address and settings.dualtrack_graph_engine != BOLT:
        return ""
    parts = urlsplit(address)
    if not parts.hostname or parts.scheme not in _ENCRYPTED + _PLAIN:
        raise ValueError(f"must be an address such as neo4j+s://graph.example.org ({', '.join(_ENCRYPTED)})")
    if parts.username or parts.password:
        raise ValueError("must not contain a user or a password")
    if parts.scheme in _PLAIN and parts.hostname not in _LOOPBACK:
        raise ValueError(f"{parts.scheme}:// is only for this machine: use {parts.scheme}+s://")
    return address
