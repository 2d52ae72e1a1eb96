"""Digests in the history table (CONTRACT 6).

pk CONV#<user>#<conv.>    sk D#000003          a digest: its text, the last query in it; never changes
                          sk D#000003#taken    it is in force: the query that first sent it

A digest written ahead waits until a query takes it; at most one waits. Both items are written in one transaction
with their chat, or on condition that the chat exists: a deletion removes chats first, so a late step cannot write
into a deleted conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dualtrack.codec import decode, encode
from dualtrack.ids import digest_id, parse_digest_id
from dualtrack.memory.ancestry import Ancestry
from dualtrack.memory.digests import Digest
from dualtrack.memory.records import Record
from dualtrack.storage.bodies import partition
from dualtrack.storage.dynamo import Action, get, put_absent, query

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.dynamo import Item

_TAKEN: Final = "#taken"
_NEWEST: Final = 3
"""Three items: a waiting digest, the mark of the digest in force, and that digest."""
_MARKS_AT_ONCE: Final = 40


@dataclass(frozen=True, slots=True)
class DigestStore:
    """Reads and write-actions of digests. ``ancestry``: where a fork reads shared digests (`across`)."""

    client: DynamoDBClient
    table: str
    ancestry: Ancestry = field(default_factory=Ancestry)

    def across(self, ancestry: Ancestry) -> DigestStore:
        """As `HistoryStore.across`."""
        return replace(self, ancestry=ancestry)

    def newest(self, user: str, conversation_id: str) -> tuple[Digest | None, Digest | None]:
        """The digest in force, and the one that waits after it. Reads three items, however many there are; one more
        for a fork without a digest of its own in force."""
        pk, waiting, mark = partition(user, conversation_id), None, ""
        for item in query(self.client, self.table, pk, prefix="D#", descending=True, page_size=_NEWEST):
            if item["sk"].endswith(_TAKEN):
                mark = item["sk"].removesuffix(_TAKEN)
            elif item["sk"] == mark:
                return _digest(item), waiting
            else:
                waiting = _digest(item)
        shared = self.ancestry.digests
        return self.find(user, conversation_id, shared) if shared else None, waiting

    def in_force_at(self, user: str, conversation_id: str, query_number: int) -> int:
        """The number of this conversation's own digest that the query sent or would have sent; 0 if there is none."""
        pk = partition(user, conversation_id)
        for item in query(
            self.client, self.table, pk, prefix="D#", descending=True, page_size=_MARKS_AT_ONCE
        ):
            if item["sk"].endswith(_TAKEN) and item["query"] <= query_number:
                return digest_number(item["sk"])
        return 0

    def find(self, user: str, conversation_id: str, number: int) -> Digest | None:
        """The digest of this number, in force or not; None if there is none."""
        pk = partition(user, self.ancestry.home_of_digest(conversation_id, number))
        item = get(self.client, self.table, {"pk": pk, "sk": _digest_key(number)})
        return _digest(item) if item else None

    def named(self, user: str, conversation_id: str, text: str) -> Digest | None:
        """The digest with an id such as ``d3``; None if there is none."""
        number = parse_digest_id(text)
        return self.find(user, conversation_id, number) if number else None

    def put_action(self, user: str, conversation_id: str, digest: Digest) -> Action:
        """The conditional put of a digest. Digests are small and need no body."""
        key = {"pk": partition(user, conversation_id), "sk": _digest_key(digest.number)}
        return put_absent("digest", self.table, key | encode(digest))

    def taken_action(self, user: str, conversation_id: str, number: int, by_query: int) -> Action:
        """The conditional put of the mark that a digest is in force from this query on."""
        key = {"pk": partition(user, conversation_id), "sk": f"{_digest_key(number)}{_TAKEN}"}
        return put_absent("taken", self.table, {**key, "query": by_query})


def digest_record(digest: Digest) -> Record:
    """A digest as the API shows it."""
    own = digest_id(digest.number)
    return Record(own, "digest", "user", digest.said, digest.created_at, ref=digest.ref)


def digest_number(sk: str) -> int:
    """The digest's number, from an item's sort key."""
    return int(sk.removeprefix("D#").removesuffix(_TAKEN))


def _digest_key(number: int) -> str:
    return f"D#{number:06d}"


def _digest(item: Item) -> Digest:
    return decode(Digest, item, number=digest_number(item["sk"]))
