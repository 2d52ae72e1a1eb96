"""Digests in the history table (CONTRACT 6).

pk CONV#<user>#<conv.>    sk D#000003          a digest: its words, the last query in it; never changes
                          sk D#000003#taken    it is in force: the query that first sent it

Written ahead, a digest waits until a query takes it; at most one waits. Both items are written in one transaction
with the chat that they belong to, or on condition that it is there: a deletion removes chats first, so that
nothing of a late step comes back to a deleted conversation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

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
"""Items: one that waits, the mark of the one in force, and that one."""
_MARKS_AT_ONCE: Final = 40


@dataclass(frozen=True, slots=True)
class DigestStore:
    """Reads and write-actions. ``ancestry``: where the digests that a fork shares are read (`Stores.across`)."""

    client: DynamoDBClient
    table: str
    ancestry: Ancestry = field(default_factory=Ancestry)

    def newest(self, user: str, conversation_id: str) -> tuple[Digest | None, Digest | None]:
        """The digest in force, and the one that waits behind it. Reads three items, however many there are; one more
        of a fork that has none of its own in force."""
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
        """The number of the digest that a query of this very conversation sent, or would have; 0 if it has none."""
        pk = partition(user, conversation_id)
        for item in query(
            self.client, self.table, pk, prefix="D#", descending=True, page_size=_MARKS_AT_ONCE
        ):
            if item["sk"].endswith(_TAKEN) and item["query"] <= query_number:
                return digest_number(item["sk"])
        return 0

    def find(self, user: str, conversation_id: str, number: int) -> Digest | None:
        """A digest, in force or not; None if there is none of that number."""
        pk = partition(user, self.ancestry.home_of_digest(conversation_id, number))
        item = get(self.client, self.table, {"pk": pk, "sk": _digest_key(number)})
        return _digest(item) if item else None

    def named(self, user: str, conversation_id: str, text: str) -> Digest | None:
        """The digest of an id, ``d3``; None for anything else."""
        number = parse_digest_id(text)
        return self.find(user, conversation_id, number) if number else None

    def put_action(self, user: str, conversation_id: str, digest: Digest) -> Action:
        """The conditional put of a digest. It is small: no body."""
        item = {
            "pk": partition(user, conversation_id),
            "sk": _digest_key(digest.number),
            "through": digest.through,
            "text": digest.content,
            "at": digest.created_at,
            "full": digest.full_tokens,
        }
        return put_absent("digest", self.table, item)

    def taken_action(self, user: str, conversation_id: str, number: int, by_query: int) -> Action:
        """The conditional put of the mark that a digest is in force from this query on."""
        key = {"pk": partition(user, conversation_id), "sk": f"{_digest_key(number)}{_TAKEN}"}
        return put_absent("taken", self.table, {**key, "query": by_query})


def digest_record(digest: Digest) -> Record:
    """A digest as the API shows it."""
    own = digest_id(digest.number)
    return Record(own, "digest", "user", digest.content, digest.created_at, ref=digest.ref)


def digest_number(sk: str) -> int:
    """The number of the digest that an item is of, from its sort key."""
    return int(sk.removeprefix("D#").removesuffix(_TAKEN))


def _digest_key(number: int) -> str:
    return f"D#{number:06d}"


def _digest(item: Item) -> Digest:
    return Digest(
        number=digest_number(item["sk"]),
        through=item["through"],
        content=item["text"],
        created_at=item["at"],
        full_tokens=item["full"],
    )
