"""The line that a request leaves in the log: which declared route, how it ended, how long it took, for whom. Pure.

The user stands in it as a hash, so that a log names nobody; an operator who looks for one user hashes the id
(docs/aws/runbooks.md).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from dualtrack.ids import is_id

if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGE: Final = "Request"
NOT_SERVED: Final = "none"
"""The route of a request that no declared route takes."""
_HASH_LENGTH: Final = 12


def request_line(
    route: str, status: int, seconds: float, user: str = "", chat_id: str = ""
) -> dict[str, Any]:
    """The fields: ``route``, ``status``, ``milliseconds``; ``user_hash`` and ``correlation_id`` (the chat's id) if
    they are known and have its form: a path may have anything. ``route``: ``GET /v1/chats/{chat_id}``."""
    chat = chat_id if is_id("chat_id", chat_id) else ""
    known = {"user_hash": user_hash(user) if user else "", "correlation_id": chat}
    return {
        "route": route,
        "status": status,
        "milliseconds": round(seconds * 1000),
        **{name: value for name, value in known.items() if value},
    }


def user_hash(user: str) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of a user's id."""
    return hashlib.sha256(user.encode()).hexdigest()[:_HASH_LENGTH]


def chat_of(path: Mapping[str, str], body: object) -> str:
    """The chat that a request is about: of its path, or the one that it started; empty for none."""
    started = body.get("chat_id") if isinstance(body, dict) else None
    return path.get("chat_id") or (started if isinstance(started, str) else "")
