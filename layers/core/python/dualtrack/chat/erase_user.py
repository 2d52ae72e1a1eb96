"""The erasure of a user and all their data (CONTRACT 4, docs/privacy.md).

    refused and noted ─► chats ended, conversations hidden, out of the pool ─► connections, requests, bodies
    one transaction       at once, by the request                              ledger lines without the person
                                                                                              │
    crossed out  ◄─ the account closed ◄─ nothing left, no late writer possible ◄─────────────┘

Each pass repeats all steps and is idempotent. Passes repeat until one finds nothing: a request that was
admitted just before the refusal may take half a minute. Each conversation's deletion is noted separately, so their
number and length do not matter.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from dualtrack.chat.delete_conversation import WRITERS_SECONDS, hide
from dualtrack.chat.end_chat import Cancellation, end_chat
from dualtrack.chat.executions import stop_execution
from dualtrack.corpora.owned import drop_all
from dualtrack.errors import ApiError
from dualtrack.requests import ChatRef
from dualtrack.storage.deletions import ALIAS, Deletion, ErasureTerms

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import ErasureStores

_DAY_SECONDS: Final = 86_400
_CLOCKS_SECONDS: Final = 300
"""Maximum clock difference between the issuer of a token and those who check it."""


class Users(Protocol):
    """The users who may sign in."""

    def delete(self, user: str) -> bool:
        """Remove the user, who can then no longer sign in; false if there is no such user."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Settings of a stage: how long the ledger is kept, and how long a token is valid."""

    ledger_days: int
    token_hours: int


def begin_erasure(stores: ErasureStores, user: str, retention: Retention, owner: str = "") -> Deletion:
    """Refuse the user from now on and note the erasure. ``owner``: whose end user it is. Idempotent."""
    now = int(stores.clock())
    terms = ErasureTerms(
        alias=f"{ALIAS}{secrets.token_hex(12)}",
        salt=secrets.token_hex(16),
        keep_until=now + retention.ledger_days * _DAY_SECONDS,
        token_seconds=retention.token_hours * 3600 + _CLOCKS_SECONDS,
        owner=owner,
    )
    erasure = Deletion("USER", user, "", now, now, terms=terms)
    stores.deletions.note_user(erasure)
    return stores.deletions.find("USER", user) or erasure


def stop_user(
    stores: ErasureStores,
    executions: Executions,
    users: Users,
    erasure: Deletion,
    has_time: Callable[[], bool],
) -> bool:
    """Revoke the user's keys, end their chats, hide their conversations, remove them from the pool; returns whether
    anything was left.

    An error in one conversation does not delay the others: the first error is raised at the end.
    """
    stores.keys.forget(stores.ledger.load(erasure.user).keys)
    was_left, trouble = False, None
    for conversation in stores.conversations.newest(erasure.user):
        was_left = True
        if not has_time():
            break
        try:
            _hide(stores, executions, conversation)
        except Exception as error:  # noqa: BLE001 - raised below
            trouble = trouble or error
    if _owner_of(erasure):
        stores.deletions.refuse(erasure)  # no token expires: the name is refused until all is deleted
    elif users.delete(erasure.user):
        was_left = True
        stores.deletions.refuse(erasure)  # a token may have been issued until now
    if trouble:
        raise trouble
    return was_left


def _owner_of(erasure: Deletion) -> str:
    return erasure.terms.owner if erasure.terms else ""


def _erase_end_users(stores: ErasureStores, erasure: Deletion) -> bool:
    """Begin the erasure of the user's end users, on the same terms; returns whether there was any."""
    was_any = False
    for user in stores.keys.end_users(erasure.user):
        was_any = True
        terms = erasure.terms and replace(erasure.terms, owner=erasure.user)
        stores.deletions.note_user(replace(erasure, user=user, tries=0, due=int(stores.clock()), terms=terms))
    return was_any


def _hide(stores: ErasureStores, executions: Executions, conversation: Conversation) -> None:
    if conversation.is_being_deleted:
        return
    is_overdue = conversation.lease_until <= stores.clock()
    if conversation.lease:
        chat = None
        try:
            chat = end_chat(
                stores,
                ChatRef(conversation.user, conversation.lease, conversation.conversation_id),
                Cancellation(),
            )
        except Exception:
            if not is_overdue:  # an unreadable chat cannot be ended: it is deleted after its deadline
                raise
        stop_execution(executions, conversation.lease, chat.execution if chat else 1)
    now_free = stores.conversations.find(conversation.user, conversation.conversation_id)
    if now_free and not now_free.is_being_deleted:
        try:
            hide(stores, now_free, take_over=is_overdue)
        except ApiError:
            return  # a chat has started meanwhile: the next pass ends it


def continue_erasure(
    stores: ErasureStores,
    executions: Executions,
    users: Users,
    erasure: Deletion,
    has_time: Callable[[], bool],
) -> None:
    """Delete what is left of the user while there is time; close the account when nothing else is left."""
    if erasure.terms is None:
        raise ValueError("The erasure has no terms.")  # the log must not name the user
    was_left = stop_user(stores, executions, users, erasure, has_time)
    was_left |= _erase_end_users(stores, erasure)
    was_left |= any(True for _ in stores.deletions.others_of(erasure.user))
    was_left |= drop_all(stores, erasure.user)
    stores.uploads.forget_user(erasure.user)
    was_left |= stores.requests.forget_user(erasure.user)
    was_left |= stores.outbox.forget_user(erasure.user)
    was_left |= stores.cache.forget_user(erasure.user)
    account = stores.ledger.expire(erasure.user, stores.clock())
    was_left |= stores.kept_ledger.move_lines(erasure.user, erasure.terms, has_time) or bool(account.holds)
    if was_left or not has_time() or stores.clock() < erasure.since + WRITERS_SECONDS:
        return
    stores.bodies.delete_objects(erasure.user)  # bodies of conversations are deleted with them
    stores.kept_ledger.close(account, erasure.terms)
    if owner := erasure.terms.owner:
        stores.keys.forget_end_user(owner, erasure.user)
    stores.deletions.cross_out(erasure, allows=bool(owner))
