"""Idempotency keys and request counts of users, in the chats table.

pk USER#<user>   sk IDEM#<hash>     an idempotency key, the fingerprint of its body, the chat it made
                 sk RATE#<window>   requests in the window that begins at this second; RATE#task#<window>: those
                                    that are small tasks
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.codec import decode, encode, stored
from dualtrack.storage.dynamo import ConditionFailed, delete, delete_partition, get, put, to_wire, transact

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.dynamo import Action


REPEAT: Final = "repeat"
"""The name of the put of an idempotency key."""


@stored
@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The chat that an idempotency key has made, and the fingerprint of the request's body."""

    chat_id: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ApiRequests:
    """Reads, writes and write-actions of keys and counts. Times are epoch seconds."""

    client: DynamoDBClient
    table: str

    def first(self, user: str, key: str, now: float) -> FirstRequest | None:
        """The first request with this key, if it is still remembered."""
        item = get(self.client, self.table, _key(user, key))
        if item is None or item["ttl"] <= now:
            return None
        return decode(FirstRequest, item)

    def remember_action(
        self, user: str, key: str, first: FirstRequest, now: float, until: int, *, since: float | None = None
    ) -> Action:
        """Remember the key ``until`` then, on condition that no other chat is remembered for it; ``since``: that none
        is which was admitted after that moment."""
        item = {**_key(user, key), **encode(first), "ttl": until, "at_ms": int(now * 1000)}
        if since is None:
            free = "attribute_not_exists(pk) OR #ttl <= :now"
            return put(REPEAT, self.table, item, free, {":now": int(now)}, {"#ttl": "ttl"})
        free = "attribute_not_exists(at_ms) OR at_ms <= :since"
        return put(REPEAT, self.table, item, free, {":since": int(since * 1000)})

    def forget(self, user: str, key: str, chat_id: str) -> None:
        """Forget the key if this is its chat, so that it can make another one."""
        its_own = "chat_id = :chat"
        with contextlib.suppress(ConditionFailed):
            transact(
                self.client, [delete("repeat", self.table, _key(user, key), its_own, {":chat": chat_id})]
            )

    def count(self, user: str, window: int, until: int, kind: str = "") -> int:
        """Count a request in a window, which expires at ``until``; returns the count so far. ``kind``: those that are
        counted besides."""
        key = {"pk": f"USER#{user}", "sk": f"RATE#{kind}{window}"}
        answer = self.client.update_item(
            TableName=self.table,
            Key=to_wire(key),
            UpdateExpression="ADD requests :one SET #ttl = if_not_exists(#ttl, :ttl)",
            ExpressionAttributeNames={"#ttl": "ttl"},
            ExpressionAttributeValues=to_wire({":one": 1, ":ttl": until}),
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["requests"]["N"])

    def forget_user(self, user: str) -> bool:
        """Forget all requests of the user; returns whether there were any."""
        return delete_partition(self.client, self.table, f"USER#{user}")


def _key(user: str, key: str) -> dict[str, str]:
    return {"pk": f"USER#{user}", "sk": f"IDEM#{hashlib.sha256(key.encode()).hexdigest()}"}
