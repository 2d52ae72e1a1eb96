"""The words by which conversations are found (`dualtrack.memory.conversation_words`), in the history table, two items a
conversation:

pk CONV#<user>#<conv.>    sk WORDS        z: the words of its queries, packed; writes: how often it was written
                          sk WORDS#new    the same of its latest queries, as far as they fit into one KB

A write is paid by the whole item, which may have 64 KB, and a query of a long conversation says few new words. So these
go into the small item, until it is full: then into the other one. Either is written in the transaction that ends a
query, on condition that no other query has ended since it was read. They are deleted with the conversation, also where
forks show queries of it: with its first own query a fork takes over the words of those that it shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.memory.conversation_words import packed, unpacked, with_query
from dualtrack.storage.bodies import partition
from dualtrack.storage.dynamo import ABSENT, batch_get, put

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.memory.ancestry import Ancestry
    from dualtrack.storage.dynamo import Action, Item

WORDS: Final = "words"
"""The name of the puts of a conversation's words, by which a lost one is recognised."""

_SORT_KEY: Final = "WORDS"
_NEW_SORT_KEY: Final = "WORDS#new"

_NEW_LIMIT: Final = 850
"""Maximum size of the words of the latest queries, in bytes, packed: with its key, the item has at most one KB."""


@dataclass(frozen=True, slots=True)
class ConversationWords:
    """Reads and the write-action of these items."""

    client: DynamoDBClient
    table: str

    def actions(
        self, user: str, conversation_id: str, ancestry: Ancestry, query: int, hashes: Sequence[int]
    ) -> list[Action]:
        """The puts of the words with those of a query that ends; none if they are all known. The first one takes over
        those of the queries that the conversation shares."""
        pk = partition(user, conversation_id)
        items = {item["sk"]: item for item in self._items([pk])}
        known = _united(items.values()) if items else self._shared(user, ancestry)
        if items and known.keys() >= set(hashes):
            return []
        all_words = with_query(known, query, hashes)
        before = items.get(_NEW_SORT_KEY, {})
        if _SORT_KEY in items:
            older = unpacked(items[_SORT_KEY]["z"]).keys()
            data = packed({word: number for word, number in all_words.items() if word not in older})
            if len(data) <= _NEW_LIMIT:
                return [self._put(pk, _NEW_SORT_KEY, data, before)]
        whole = self._put(pk, _SORT_KEY, packed(all_words), items.get(_SORT_KEY, {}))
        return [whole, self._put(pk, _NEW_SORT_KEY, packed({}), before)] if before else [whole]

    def _put(self, pk: str, sk: str, data: bytes, before: Mapping[str, Any]) -> Action:
        """Put words in place of those that were read, if there were any."""
        writes = int(before.get("writes", 0))
        new = {"pk": pk, "sk": sk, "z": data, "writes": writes + 1}
        if not before:
            return put(WORDS, self.table, new, ABSENT)
        return put(WORDS, self.table, new, "writes = :before", {":before": writes})

    def of_all(self, user: str, conversation_ids: Sequence[str]) -> Mapping[str, Sequence[bytes]]:
        """The packed words of these conversations, as far as they have any; like their list, they may be a moment
        behind."""
        ids = {partition(user, conversation_id): conversation_id for conversation_id in conversation_ids}
        found: dict[str, list[bytes]] = {}
        for item in self._items(ids, consistent=False):
            found.setdefault(ids[item["pk"]], []).append(item["z"])
        return found

    def _shared(self, user: str, ancestry: Ancestry) -> dict[int, int]:
        through = {partition(user, part.conversation_id): part.through for part in ancestry.parts}
        items = self._items(through)
        own = {pk: _united(item for item in items if item["pk"] == pk) for pk in through}
        shared: dict[int, int] = {}
        for pk, known in own.items():
            for word, query in known.items():
                if query <= through[pk]:
                    shared[word] = min(query, shared.get(word, query))
        return shared

    def _items(self, pks: Collection[str], *, consistent: bool = True) -> list[Item]:
        keys = [{"pk": pk, "sk": sk} for pk in pks for sk in (_SORT_KEY, _NEW_SORT_KEY)]
        return batch_get(self.client, self.table, keys, consistent=consistent)


def _united(items: Iterable[Item]) -> dict[int, int]:
    """The words of a conversation's items, each with the first query that said it."""
    known: dict[int, int] = {}
    for item in items:
        for word, query in unpacked(item["z"]).items():
            known[word] = min(query, known.get(word, query))
    return known
