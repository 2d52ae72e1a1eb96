"""Pending deletions, in the history table, and erased users, in the chats table (CONTRACT 4).

    pk DELETIONS       sk CONV#<user>#<conversation>   a conversation: hidden, its items are being deleted
                       sk CHAT#<user>#<chat>           a chat that late writers may still write into
                       sk USER#<user>                  a user, with the terms of the erasure
    pk ERASED#<hash>   sk USER                         (chats) refuses the tokens that a user still has, with ttl

A deletion is noted in the transaction that hides its target, so if the request fails, the sweep finds it. The sweep
works on it from ``due`` on, and crosses it out when nothing is left and no late writer is possible. The hash is that
of a random id, so after the deletions nothing here identifies the person.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from dualtrack.codec import APART, decode, encode, stored
from dualtrack.storage.dynamo import (
    ConditionFailed,
    check,
    delete,
    get,
    put,
    put_absent,
    query,
    transact,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action, Item

ALIAS: Final = "erased-"
"""The prefix of the aliases under which the ledgers of erased users are kept; no user id begins with it."""

_LIST: Final = "DELETIONS"

DeletionKind = Literal["CONV", "CHAT", "USER"]


@stored
@dataclass(frozen=True, slots=True)
class ErasureTerms:
    """The terms of an erasure: the alias under which the ledger is kept, made up for this erasure, and until when
    (epoch s); ``salt`` renames its chats and is stored only here; the pool's tokens last ``token_seconds``. ``owner``:
    whose end user it is, empty for a user of the pool."""

    alias: str
    salt: str
    keep_until: int
    token_seconds: int
    owner: str = ""


@stored
@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of a conversation, a chat (``what``: its id) or a user. Times are epoch seconds."""

    kind: Annotated[DeletionKind, APART]
    user: Annotated[str, APART]
    what: Annotated[str, APART]
    since: int
    due: int
    tries: int = 0
    terms: ErasureTerms | None = None

    @property
    def key(self) -> dict[str, str]:
        """Its key in the list."""
        suffix = f"#{self.what}" if self.what else ""
        return {"pk": _LIST, "sk": f"{self.kind}#{self.user}{suffix}"}


@dataclass(frozen=True, slots=True)
class Deletions:
    """The list and the refusals. ``table`` is the history table, ``refusals`` the chats table."""

    client: DynamoDBClient
    table: str
    refusals: str
    clock: Clock

    def note(self, deletion: Deletion, hiding: Sequence[Action] = ()) -> None:
        """Note a deletion, in one transaction with ``hiding``. If it was noted before, it restarts."""
        transact(self.client, [*hiding, put("deletion", self.table, _item(deletion))])

    def note_user(self, deletion: Deletion) -> None:
        """Refuse the user from now on and note the erasure; an erasure in progress keeps its terms."""
        noted = put_absent("deletion", self.table, _item(deletion))
        with contextlib.suppress(ConditionFailed):
            transact(self.client, [self._refusal(deletion), noted])

    def refuse(self, deletion: Deletion) -> None:
        """Refuse the user until every token issued so far has expired."""
        transact(self.client, [self._refusal(deletion)])

    def is_refused(self, user: str) -> bool:
        """Whether the user was erased while a token of theirs may still be valid."""
        item = get(self.client, self.refusals, _refusal_key(user))
        return item is not None and item["ttl"] > self.clock()

    def not_refused(self, user: str) -> Action:
        """The condition that the user has not been erased, for a write that an erasure must not miss."""
        return check("erased", self.refusals, _refusal_key(user), "attribute_not_exists(pk)")

    def due(self) -> list[Deletion]:
        """All deletions that are due: those with the fewest tries first, then the oldest."""
        now = self.clock()
        listed = (_deletion(item) for item in query(self.client, self.table, _LIST))
        return sorted(
            (deletion for deletion in listed if deletion.due <= now),
            key=lambda deletion: (deletion.tries, deletion.since),
        )

    def find(self, kind: DeletionKind, user: str, what: str = "") -> Deletion | None:
        """The deletion, if it is noted."""
        item = get(self.client, self.table, Deletion(kind, user, what, 0, 0).key)
        return _deletion(item) if item else None

    def others_of(self, user: str) -> Iterator[Deletion]:
        """The deletions of the user's conversations and chats."""
        for kind in ("CHAT", "CONV"):
            for item in query(self.client, self.table, _LIST, prefix=f"{kind}#{user}#"):
                yield _deletion(item)

    def count_try(self, deletion: Deletion) -> None:
        """Note that a sweep begins to work on it. Raises `ConditionFailed` if it is done."""
        self._change(deletion, "SET tries = :tries", {":tries": deletion.tries + 1})

    def put_off(self, deletion: Deletion, due: int) -> None:
        """Make it due again at ``due``; does nothing if it is done."""
        with contextlib.suppress(ConditionFailed):
            self._change(deletion, "SET due = :due", {":due": due})

    def _change(self, deletion: Deletion, change: str, values: dict[str, Any]) -> None:
        action = update("deletion", self.table, deletion.key, change, "attribute_exists(pk)", values)
        transact(self.client, [action])

    def cross_out(self, deletion: Deletion, *, allows: bool = False) -> None:
        """Remove it, because it is done; if it was noted again meanwhile, it stays. ``allows``: the user is refused no
        more."""
        the_same = "since = :since"
        done = [delete("deletion", self.table, deletion.key, the_same, {":since": deletion.since})]
        done += [delete("refusal", self.refusals, _refusal_key(deletion.user))] if allows else []
        with contextlib.suppress(ConditionFailed):
            transact(self.client, done)

    def _refusal(self, deletion: Deletion) -> Action:
        seconds = deletion.terms.token_seconds if deletion.terms else 0
        item = {**_refusal_key(deletion.user), "ttl": int(self.clock()) + seconds}
        return put("refusal", self.refusals, item)


def _refusal_key(user: str) -> dict[str, str]:
    return {"pk": f"ERASED#{hashlib.sha256(user.encode()).hexdigest()}", "sk": "USER"}


def _item(deletion: Deletion) -> Item:
    return {**deletion.key, **encode(deletion)}


def _deletion(item: Item) -> Deletion:
    kind, user, *what = item["sk"].split("#", 2)
    return decode(Deletion, item, kind=kind, user=user, what="".join(what))
