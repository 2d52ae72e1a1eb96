"""Starting the erasure of a user from the API (CONTRACT 4)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dualtrack.api.end_users import end_user_id, written_name
from dualtrack.chat.erase_user import begin_erasure, stop_user
from dualtrack.errors import not_found
from dualtrack.runtime.time_limit import time_for

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Services

REQUEST_SECONDS: Final = 12.0
"""Time for the part of an erasure or deletion within the request: the gateway waits 29 s; the sweep does the rest."""

_log: Final = logging.getLogger(__name__)


def must_be_there(services: Services, user: str) -> None:
    """Raise 404 for a user who is not in the pool and has no erasure in progress."""
    is_known = services.user_pool.has(user)
    if not is_known and not services.stores.deletions.find("USER", user):
        raise not_found("There is no such user.")


def erase_end_user(services: Services, owner: str, name: str) -> answers.Erasure:
    """The same for an end user of the owner's service. Raises 400 for a name that is not valid, 404 for one for whom no
    key has acted."""
    user = end_user_id(owner, written_name(name))
    if not services.stores.keys.has_end_user(owner, user):
        raise not_found("There is no such end user.")
    return erase(services, user, owner)


def erase(services: Services, user: str, owner: str = "") -> answers.Erasure:
    """Start the erasure: refuse the user, end their chats and hide their conversations. The sweep does the rest.
    ``owner``: of an end user.

    The erasure is recorded first, so a later error does not fail the request.
    """
    stores = services.stores
    erasure = begin_erasure(stores, user, services.retention, owner)
    try:
        stop_user(stores, services.executions, services.user_pool, erasure, time_for(REQUEST_SECONDS))
    except Exception:  # noqa: BLE001 - the sweep retries
        _log.exception("The sweep continues an erasure")
    return {"status": "erasing"}
