"""The erasure of a user with everything that is theirs (CONTRACT 4, docs/privacy.md).

    refused and noted ─► chats ended, conversations hidden, out of the pool ─► connections, requests, bodies
    one transaction       at once, by the request                              ledger lines without the person
                                                                                              │
    crossed out  ◄─ the account closed ◄─ nothing found, nobody can write any more ◄──────────┘

Every look does all of it again and is harmless at any time. While one finds something (a request that was admitted
just before the refusal may take half a minute) there is another. The deletion of each conversation is noted by itself,
so neither the number nor the length of them matters.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from dualtrack.chat.delete_conversation import WRITERS_SECONDS, hide
from dualtrack.chat.end_chat import Cancelled, end_chat
from dualtrack.chat.executions import stop_execution
from dualtrack.errors import ApiError
from dualtrack.requests import ChatRef
from dualtrack.storage.deletions import ALIAS, Deletion, Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import Stores

_DAY_SECONDS: Final = 86_400
_CLOCKS_SECONDS: Final = 300
"""By how much the clocks of those who make and who check a token may differ."""


class Users(Protocol):
    """Who may sign in."""

    def delete(self, user: str) -> bool:
        """Let the user sign in no more; false if there is none."""


@dataclass(frozen=True, slots=True)
class Retention:
    """A stage's settings: how long the ledger is kept, and how long a token lasts."""

    ledger_days: int
    token_hours: int


def begin_erasure(stores: Stores, user: str, retention: Retention) -> Deletion:
    """Refuse the user from now on and note the erasure. Again it changes nothing."""
    now = int(stores.clock())
    terms = Terms(
        alias=f"{ALIAS}{secrets.token_hex(12)}",
        salt=secrets.token_hex(16),
        keep_until=now + retention.ledger_days * _DAY_SECONDS,
        token_seconds=retention.token_hours * 3600 + _CLOCKS_SECONDS,
    )
    one = Deletion("USER", user, "", now, now, terms=terms)
    stores.deletions.note_user(one)
    return stores.deletions.find("USER", user) or one


def stop_user(
    stores: Stores, executions: Executions, users: Users, one: Deletion, has_time: Callable[[], bool]
) -> bool:
    """End the user's chats, hide their conversations, take them out of the pool; whether anything of it was left.

    A conversation that makes trouble keeps no other one waiting: the first trouble is raised at the end.
    """
    found, trouble = False, None
    for conversation in stores.conversations.newest(one.user):
        found = True
        if not has_time():
            break
        try:
            _hide(stores, executions, conversation)
        except Exception as error:  # noqa: BLE001 - raised below
            trouble = trouble or error
    if users.delete(one.user):
        found = True
        stores.deletions.refuse(one)  # a token may have been given out until now
    if trouble:
        raise trouble
    return found


def _hide(stores: Stores, executions: Executions, found: Conversation) -> None:
    if found.is_being_deleted:
        return
    is_overdue = found.lease_until <= stores.clock()
    if found.lease:
        try:
            end_chat(stores, ChatRef(found.user, found.lease, found.conversation_id), Cancelled())
        except Exception:
            if not is_overdue:  # one that cannot be read cannot be ended: it is deleted once its time is up
                raise
        stop_execution(executions, found.lease)
    now_free = stores.conversations.find(found.user, found.conversation_id)
    if now_free and not now_free.is_being_deleted:
        try:
            hide(stores, now_free, whoever_holds_it=is_overdue)
        except ApiError:
            return  # a chat was faster: the next look ends it


def continue_erasure(
    stores: Stores, executions: Executions, users: Users, one: Deletion, has_time: Callable[[], bool]
) -> None:
    """Everything that is left of the user, while there is time; closes the account when there is nothing else."""
    if one.terms is None:
        raise ValueError("An erasure without its terms.")  # the log must not name the user
    found = stop_user(stores, executions, users, one, has_time)
    found |= any(True for _ in stores.deletions.others_of(one.user))
    found |= stores.requests.forget_user(one.user)
    found |= stores.cache.forget_user(one.user)
    account = stores.ledger.expire(one.user, stores.clock())
    found |= stores.kept_ledger.move_lines(one.user, one.terms, has_time) or bool(account.holds)
    if found or not has_time() or stores.clock() < one.since + WRITERS_SECONDS:
        return
    stores.bodies.delete_objects(one.user)  # those of conversations went with them
    stores.kept_ledger.close(account, one.terms)
    stores.deletions.cross_out(one)
