"""What has to be told, noted by the transactions in which it happens, in the chats table.

    pk HOOKS#<owner>   sk COUNT              how many listeners the owner has: without one, nothing is noted
                       sk OUTBOX#<message>   what has to be told; in the sparse index `open`
                       sk TOLD#<message>     that something was told which is told once

Whoever tells it takes it from here, and may keep more in an owner's partition, which an erasure deletes as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.codec import decode, encode
from dualtrack.notices import Notice
from dualtrack.storage.dynamo import ConditionFailed, delete_partition, get, put, put_absent, transact
from dualtrack.storage.open_index import partition_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action, Item

KEY_PREFIX: Final = "HOOKS#"
"""The prefix of the partition keys: whoever tells may touch no other items."""

COUNT: Final = "COUNT"
LISTENERS: Final = "hooks"
"""The attribute of the item `COUNT`."""

NOTICE_PREFIX: Final = "OUTBOX#"

KIND: Final = "hooks"
"""The part of the index."""

KEPT_SECONDS: Final = 7 * 86_400
"""How long a notice waits for somebody to take it."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Notes what has to be told. ``tells_all``: whatever happens, not only to owners with a listener."""

    client: DynamoDBClient
    table: str
    clock: Clock
    tells_all: bool = False

    def tells(self, owner: str) -> bool:
        """Whether anything is noted of the owner's chats, who has a listener."""
        if self.tells_all:
            return True
        count = get(self.client, self.table, key_of(owner, COUNT), consistent=False)
        return bool(count and count[LISTENERS])

    def notice_action(self, owner: str, notice: Notice) -> Action:
        """Note in a transaction what has to be told. The same notice again changes nothing that is still there."""
        now = int(self.clock())
        item = {**key_of(owner, f"{NOTICE_PREFIX}{notice.message_id}"), **encode(notice)}
        item |= {"open": partition_of(KIND, owner), "deadline": now, "ttl": now + KEPT_SECONDS}
        return put("notice", self.table, item)

    def tell_once(self, owner: str, notice: Notice, until: int) -> None:
        """Note what has to be told unless it was noted before; that it was is remembered ``until`` then (epoch seconds;
        0: for good)."""
        mark = {**key_of(owner, f"TOLD#{notice.message_id}"), **({"ttl": until} if until else {})}
        try:
            transact(self.client, [put_absent("told", self.table, mark), self.notice_action(owner, notice)])
        except ConditionFailed:
            return

    def forget_user(self, owner: str) -> bool:
        """Delete all of an owner; returns whether there was anything."""
        return delete_partition(self.client, self.table, partition_of_owner(owner))


def notice_in(item: Item) -> Notice:
    """What an item of the outbox has to tell."""
    return decode(Notice, item, message_id=item["sk"].removeprefix(NOTICE_PREFIX))


def partition_of_owner(owner: str) -> str:
    """The partition key."""
    return f"{KEY_PREFIX}{owner}"


def key_of(owner: str, sk: str) -> dict[str, str]:
    """The key of one of the owner's items."""
    return {"pk": partition_of_owner(owner), "sk": sk}
