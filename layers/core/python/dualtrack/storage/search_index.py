"""The search index of conversations in the history table: bytes by query, of words and of vectors
(`dualtrack.memory.query_index`).

pk CONV#<user>#<conv.>    sk K#000003               query 3: its passages and words, written when it ends
                          sk L#000016               the same of the 16 queries up to this one, regrouped
                          sk V#<model>#000003       query 3: vectors by an embedding model, int8
                          sk W#<model>#000016       those of 16 queries

A search reads blocks, and single queries where there is no block: few items, however long the conversation is. Blocks
begin at every 16th query in all conversations, so that a fork reads those of its parent. An item is only ever replaced
by an equal one, or by one of today's `RULE`: words of another rule count as not stored, so that a search makes them
anew. Large items are stored in S3, where a write costs as much as 8 KB in the table.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dualtrack.knowledge.words import RULE
from dualtrack.memory.ancestry import Ancestry, QueryRange
from dualtrack.memory.query_index import QueryIndex, packed, unpacked
from dualtrack.storage.bodies import body_of, object_of, partition
from dualtrack.storage.dynamo import put, query

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.bodies import BodyStore, Write
    from dualtrack.storage.dynamo import Item

BLOCK: Final = 16
"""Queries that are regrouped into one item."""

BLOCK_BYTES: Final = 8 * 1_024 * 1_024
"""Maximum size of a block, unpacked: larger ones stay single, because few of them fill a search."""

INLINE_LIMIT: Final = 2 * 1_024
TABLE_LIMIT: Final = 16 * 1_024
"""Maximum sizes of what is stored in the item, and of what is stored beside it in the table, in bytes, packed."""

PASSAGES_READ: Final = 20_000
"""Maximum number of passages that a search reads, the newest ones."""

BYTES_READ: Final = 96 * 1_024 * 1_024
"""Maximum size of what a search reads, unpacked; the newest queries."""

_OBJECTS_AT_ONCE: Final = 16
_WORDS: Final = ("K#", "L#")
_HEAD: Final = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """``queries``: bytes by number. ``blocks``: the last query of each stored block. Queries up to ``after`` were left
    out because of the limits."""

    queries: Mapping[int, bytes]
    blocks: frozenset[int]
    after: int


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """Reads and writes of the index. ``ancestry``: where a fork reads shared queries (`across`); writes always go to
    its own partition.

    Reads raise `Gone` if an object no longer exists: the conversation is being deleted.
    """

    client: DynamoDBClient
    table: str
    bodies: BodyStore
    ancestry: Ancestry = field(default_factory=Ancestry)

    def across(self, ancestry: Ancestry) -> SearchIndex:
        """The index as a conversation with this ancestry sees it."""
        return replace(self, ancestry=ancestry)

    def words(
        self, user: str, conversation_id: str, before: int, after: int = 0
    ) -> tuple[dict[int, QueryIndex], StoredIndex]:
        """What is stored of the queries between two numbers, within the limits."""
        found = self._found(user, conversation_id, _WORDS, after, before)
        return {number: unpacked(data) for number, data in found.queries.items()}, found

    def vectors(self, user: str, conversation_id: str, model: str, after: int, before: int) -> StoredIndex:
        """The same for vectors of a model."""
        return self._found(user, conversation_id, _vector_keys(model), after, before)

    def words_writes(self, user: str, conversation_id: str, queries: Mapping[int, QueryIndex]) -> list[Write]:
        """The put of one query's index, or of a whole block's, and its body if it is large."""
        passages = sum(len(index.passages) for index in queries.values())
        data = {number: packed(index) for number, index in queries.items()}
        return self._writes(user, conversation_id, _WORDS, data, passages)

    def vectors_writes(
        self, user: str, conversation_id: str, model: str, queries: Mapping[int, bytes]
    ) -> list[Write]:
        """The same for vectors."""
        return self._writes(user, conversation_id, _vector_keys(model), queries, 0)

    def _writes(
        self,
        user: str,
        conversation_id: str,
        keys: tuple[str, str],
        queries: Mapping[int, bytes],
        passages: int,
    ) -> list[Write]:
        pk, sk = partition(user, conversation_id), f"{keys[len(queries) > 1]}{max(queries):06d}"
        data = b"".join(_HEAD.pack(number, len(own)) + own for number, own in sorted(queries.items()))
        item = {"pk": pk, "sk": sk, "passages": passages, "size": len(data), "rule": RULE}
        z = zlib.compress(data)
        if len(z) <= INLINE_LIMIT:
            return [put(sk, self.table, {**item, "z": z})]
        body = body_of(pk, data) if len(z) <= TABLE_LIMIT else object_of(pk, z)
        return [body, put(sk, self.table, {**item, "body": body.pointer})]

    def _found(
        self, user: str, conversation_id: str, keys: tuple[str, str], after: int, before: int
    ) -> StoredIndex:
        """What is stored, the newest first until the limits are reached: a fork's own first, which may have shared
        queries too, then that of the conversations that it shares."""
        single, block = keys
        items: list[tuple[str, Item]] = []
        covered: set[int] = set()
        shared = self.ancestry.runs(conversation_id, after, before) if self.ancestry.parts else ()
        for run in (QueryRange(conversation_id, after, before), *reversed(shared)):
            pk = partition(user, run.conversation_id)
            blocks = self._newest(pk, block, run)
            covered.update(number for item in blocks for number in _block_of(_last(item)))
            items += [(pk, item) for item in blocks]
            floor = min((_last(item) for item in blocks), default=BLOCK) - BLOCK
            for gap in _gaps(run, covered, floor if _is_full(blocks) else 0):
                singles = self._newest(pk, single, gap)
                covered.update(map(_last, singles))
                items += [(pk, item) for item in singles]
        items.sort(key=lambda entry: -_last(entry[1]))
        read = _within_limits(items)
        queries = dict(part for data in self._data(read) for part in _parts(data))
        blocks_read = frozenset(_last(item) for _, item in read if item["sk"].startswith(block))
        is_cut = _is_full([item for _, item in read])
        return StoredIndex(queries, blocks_read, min(queries) - 1 if is_cut else after)

    def _newest(self, pk: str, prefix: str, run: QueryRange) -> list[Item]:
        """The items of this kind whose last query is in the run, newest first, until they fill a search."""
        first, end = f"{prefix}{run.after:06d}~", f"{prefix}{run.before - 1:06d}~"
        items: list[Item] = []
        is_of_words = prefix in _WORDS
        for item in query(self.client, self.table, pk, after=first, before=end, descending=True):
            if is_of_words and item.get("rule") != RULE:
                continue
            items.append(item)
            if _is_full(items):
                break
        return items

    def _data(self, items: Sequence[tuple[str, Item]]) -> list[bytes]:
        """The data in the items, or in their bodies, which are read in parallel."""

        def load(entry: tuple[str, Item]) -> bytes:
            pk, item = entry
            return zlib.decompress(item["z"]) if "z" in item else self.bodies.load(pk, item["body"])

        if all("z" in item for _, item in items):
            return list(map(load, items))
        with ThreadPoolExecutor(_OBJECTS_AT_ONCE) as pool:
            return list(pool.map(load, items))


def blocks_to_write(
    queries: Mapping[int, int], stored: Collection[int], fresh: Collection[int], last: int
) -> Iterator[Sequence[int]]:
    """Which queries to write, together or one by one: blocks that became complete, and what is ``fresh`` besides.

    ``queries``: sizes by number; ``stored``: the last queries of stored blocks; ``last``: the last ended query.
    """
    ends = {number + -number % BLOCK for number in queries}
    for end in sorted(ends - {*stored}):
        block = [number for number in _block_of(end) if number in queries]
        if end <= last and len(block) == BLOCK and sum(map(queries.__getitem__, block)) <= BLOCK_BYTES:
            yield block
        else:
            yield from ([number] for number in block if number in fresh)


def _block_of(end: int) -> range:
    return range(end - BLOCK + 1, end + 1)


def _gaps(run: QueryRange, covered: Collection[int], floor: int) -> Iterator[QueryRange]:
    """The stretches of a run without these numbers, the newest first; none up to ``floor``."""
    before = None
    for number in range(run.before - 1, max(run.after, floor) - 1, -1):
        is_missing = number > max(run.after, floor) and number not in covered
        if is_missing and before is None:
            before = number + 1
        if not is_missing and before is not None:
            yield QueryRange(run.conversation_id, number, before)
            before = None


def _last(item: Item) -> int:
    """The last query of an item, from its key."""
    return int(item["sk"][-6:])


def _is_full(items: Sequence[Item]) -> bool:
    passages, size = (sum(int(item[name]) for item in items) for name in ("passages", "size"))
    return passages >= PASSAGES_READ or size >= BYTES_READ


def _within_limits(items: Sequence[tuple[str, Item]]) -> Sequence[tuple[str, Item]]:
    """The first items, until they fill a search."""
    passages = size = 0
    for place, (_, item) in enumerate(items):
        if passages >= PASSAGES_READ or size >= BYTES_READ:
            return items[:place]
        passages += item["passages"]
        size += item["size"]
    return items


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        number, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size + size
        yield number, data[at - size : at]


def _vector_keys(model: str) -> tuple[str, str]:
    """The prefixes of sort keys; they have the model, because vectors of two models are never compared."""
    name = hashlib.sha256(model.encode()).hexdigest()[:12]
    return f"V#{name}#", f"W#{name}#"
