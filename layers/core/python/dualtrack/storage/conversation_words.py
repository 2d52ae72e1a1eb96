"""The words by which conversations are found (`dualtrack.memory.conversation_words`), in the history table, one item a
conversation:

pk CONV#<user>#<conv.>    sk WORDS    z: the words of its queries so far, packed; writes: how often it was written

It is written in the transaction that ends a query, on condition that no other query has ended since it was read. It is
deleted with the conversation, also where forks show queries of it: with its first own query a fork takes over the words
of those that it shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.memory.conversation_words import packed, unpacked, with_query
from dualtrack.storage.bodies import partition
from dualtrack.storage.dynamo import ABSENT, batch_get, get, put

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.memory.ancestry import Ancestry
    from dualtrack.storage.dynamo import Action, Item

WORDS: Final = "words"
"""The name of the put of a conversation's words, by which a lost put is recognised."""

_SORT_KEY: Final = "WORDS"


@dataclass(frozen=True, slots=True)
class ConversationWords:
    """Reads and the write-action of these items."""

    client: DynamoDBClient
    table: str

    def actions(
        self, user: str, conversation_id: str, ancestry: Ancestry, query: int, hashes: Sequence[int]
    ) -> list[Action]:
        """The put of the words with those of a query that ends; none if they are all known. The first one takes over
        those of the queries that the conversation shares."""
        item = get(self.client, self.table, _key(user, conversation_id))
        known = unpacked(item["z"]) if item else self._shared(user, ancestry)
        if item and known.keys() >= set(hashes):
            return []
        data = packed(with_query(known, query, hashes))
        writes = int(item["writes"]) if item else 0
        new = {**_key(user, conversation_id), "z": data, "writes": writes + 1}
        if not item:
            return [put(WORDS, self.table, new, ABSENT)]
        return [put(WORDS, self.table, new, "writes = :before", {":before": writes})]

    def of_all(self, user: str, conversation_ids: Sequence[str]) -> Mapping[str, bytes]:
        """The packed words of these conversations, as far as they have any."""
        pks = {partition(user, conversation_id): conversation_id for conversation_id in conversation_ids}
        found = self._items(pks)
        return {pks[item["pk"]]: item["z"] for item in found}

    def _shared(self, user: str, ancestry: Ancestry) -> dict[int, int]:
        through = {partition(user, part.conversation_id): part.through for part in ancestry.parts}
        shared: dict[int, int] = {}
        for item in self._items(through):
            for word, query in unpacked(item["z"]).items():
                if query <= through[item["pk"]]:
                    shared[word] = min(query, shared.get(word, query))
        return shared

    def _items(self, pks: Collection[str]) -> list[Item]:
        return batch_get(self.client, self.table, [{"pk": pk, "sk": _SORT_KEY} for pk in pks])


def _key(user: str, conversation_id: str) -> dict[str, str]:
    return {"pk": partition(user, conversation_id), "sk": _SORT_KEY}
