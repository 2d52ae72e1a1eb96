"""The erasure of a user, as the API begins it (CONTRACT 4)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dualtrack.api.users import is_user_id
from dualtrack.chat.erase_user import begin_erasure, stop_user
from dualtrack.errors import not_found
from dualtrack.runtime.time_limit import time_for

if TYPE_CHECKING:
    from dualtrack.api.request import Services
    from dualtrack.frozen import Json

REQUEST_SECONDS: Final = 12.0
"""For what an erasure or a deletion does at once; the gateway waits 29 s, and the sweep does the rest."""

_log: Final = logging.getLogger(__name__)


def must_be_there(services: Services, user: str) -> None:
    """Raise 404 for a user whom neither the pool has nor an erasure that is under way."""
    is_known = services.user_pool.has(user)
    if not is_known and not (is_user_id(user) and services.stores.deletions.find("USER", user)):
        raise not_found("There is no such user.")


def erase(services: Services, user: str) -> dict[str, Json]:
    """Begin the erasure: refuse the user, end their chats and hide their conversations. The sweep does the rest.

    It is on record before anything else is tried, so what goes wrong then is no reason to refuse it.
    """
    stores = services.stores
    one = begin_erasure(stores, user, services.retention)
    try:
        stop_user(stores, services.executions, services.user_pool, one, time_for(REQUEST_SECONDS))
    except Exception:  # noqa: BLE001 - whatever it is, it is tried again
        _log.exception("An erasure goes on in the sweep")
    return {"status": "erasing"}
