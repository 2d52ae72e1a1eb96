"""Continues every deletion that is due: conversations, chats, users. Each has a time limit, so none blocks the
others."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.chat.delete_conversation import continue_chat_deletion, continue_deletion
from dualtrack.chat.erase_user import continue_erasure
from dualtrack.runtime.time_limit import time_for, within
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.chat.erase_user import Users
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.deletions import Deletion
    from dualtrack.storage.stores import ErasureStores

ONE_DELETION_SECONDS: Final = 60.0
"""Time limit of one deletion in a sweep, or its share of the time if that is more. The next sweep continues it."""

_RESERVE_SECONDS: Final = 5.0
"""Part of a deletion's time that is reserved for requests in progress at its end."""


@dataclass(frozen=True, slots=True)
class SweptDeletions:
    """How many deletions a sweep has worked on; not ``complete`` if its time ran out before all that were due."""

    seen: int = 0
    complete: bool = True


def sweep_deletions(
    stores: ErasureStores,
    executions: Executions,
    users: Users,
    seconds: float,
    one_deletion: float = ONE_DELETION_SECONDS,
) -> SweptDeletions:
    """Continue each due deletion once, within ``seconds``, those with the fewest tries first.

    Errors are raised at the end, after all others had their turn.
    """
    ends = time.monotonic() + seconds
    seen, troubles = 0, []
    due = stores.deletions.due()
    for deletion in due:
        left = ends - time.monotonic()
        left = min(left, max(one_deletion, left / (len(due) - seen)))
        if left <= _RESERVE_SECONDS:
            break
        seen += 1
        try:
            within(
                left, _continuation(stores, executions, users, deletion, left - _RESERVE_SECONDS), "deletion"
            )
        except Exception as error:  # noqa: BLE001 - raised below
            troubles.append(error)
    if troubles:
        raise ExceptionGroup(f"{len(troubles)} of {seen} deletions", troubles)
    return SweptDeletions(seen, seen == len(due))


def _continuation(
    stores: ErasureStores, executions: Executions, users: Users, deletion: Deletion, seconds: float
) -> Callable[[], None]:
    def run() -> None:
        has_time = time_for(seconds)
        try:
            stores.deletions.count_try(deletion)
        except ConditionFailed:
            return
        if deletion.kind == "CONV":
            continue_deletion(stores, deletion, has_time)
        elif deletion.kind == "CHAT":
            continue_chat_deletion(stores, deletion)
        else:
            continue_erasure(stores, executions, users, deletion, has_time)

    return run
