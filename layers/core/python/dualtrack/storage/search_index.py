"""The index that searches of a conversation make and keep, in its partition of the history table.

pk CONV#<user>#<conv.>    sk K#000003.0000                a segment of passages and the words of their records; the key
                                                          has the query of the first passage and how many of that
                                                          query's passages precede it
                          sk V#<model>#000003.0000        their vectors by an embedding model, int8

Segments are made at the first search and never change. Large ones are stored in S3, where a write costs as much as
8 KB in the table, and does not use up the partition's thousand units a second.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.codec import dump, load
from dualtrack.memory.passages import Passage
from dualtrack.storage.bodies import object_of, partition
from dualtrack.storage.dynamo import put_absent, query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.bodies import BodyStore, Write
    from dualtrack.storage.dynamo import Item

SEGMENT_PASSAGES: Final = 128
"""Passages in a segment: their vectors are made and stored together."""

INLINE_LIMIT: Final = 16 * 1_024
"""Maximum size of an item in the table, in bytes. The passages of a single query, which later searches add, are
smaller: otherwise each search would make an object."""

PASSAGES_READ: Final = 20_000
"""Maximum number of passages that a search reads, the newest ones."""

BYTES_READ: Final = 96 * 1_024 * 1_024
"""Maximum size of the segments that a search reads, unpacked; the newest ones."""

_OBJECTS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive passages. ``key`` orders segments; all passages of query ``through`` are in it or before it.

    ``words``: the words of their records (`tools.conversation.postings`).
    """

    key: str
    through: int
    passages: tuple[Passage, ...]
    words: bytes = b""


def segments_of(queries: Iterable[tuple[int, Sequence[Passage]]]) -> Iterator[Segment]:
    """Segments of passages, which are ordered by query number; deterministic."""
    key, through, held = "", 0, []  # type: str, int, list[Passage]
    for number, passages in queries:
        for index, passage in enumerate(passages):
            if len(held) == SEGMENT_PASSAGES:
                yield Segment(key, through, tuple(held))
                held = []
            key = key if held else f"{number:06d}.{index:04d}"
            held.append(passage)
        through = number
    if held:
        yield Segment(key, through, tuple(held))


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """Reads and write-actions of the kept passages and vectors of conversations.

    Reads raise `Gone` if an object no longer exists: the conversation is being deleted.
    """

    client: DynamoDBClient
    table: str
    bodies: BodyStore

    def segments(self, user: str, conversation_id: str) -> tuple[Segment, ...]:
        """The stored segments in order; only the newest ones, up to `PASSAGES_READ` passages and `BYTES_READ`."""
        items: list[Item] = []
        passages = size = 0
        for item in query(
            self.client, self.table, partition(user, conversation_id), prefix="K#", descending=True
        ):
            items.append(item)
            passages += item["passages"]
            size += item["size"]
            if passages >= PASSAGES_READ or size >= BYTES_READ:
                break
        items.reverse()
        return tuple(map(_segment, items, self._packed(items)))

    def vectors(
        self, user: str, conversation_id: str, model: str, segments: Sequence[Segment]
    ) -> dict[str, bytes]:
        """The stored vectors of these segments by segment key."""
        if not segments:
            return {}
        prefix = _vector_key(model, "")
        first, end = f"{prefix}{segments[0].key[:6]}", f"{prefix}{segments[-1].key}~"
        pk = partition(user, conversation_id)
        items = list(query(self.client, self.table, pk, after=first, before=end))
        keys = [item["sk"].removeprefix(prefix) for item in items]
        return dict(zip(keys, self._packed(items), strict=True))

    def segment_writes(self, user: str, conversation_id: str, segment: Segment) -> list[Write]:
        """The put of a segment that must not exist yet, and its object if it is large."""
        texts = dump(segment.passages).encode()
        data = struct.pack("<I", len(texts)) + texts + segment.words
        counted = {"through": segment.through, "passages": len(segment.passages), "size": len(data)}
        packed = zlib.compress(data)
        return self._writes(user, conversation_id, f"K#{segment.key}", counted, packed)

    def vector_writes(
        self, user: str, conversation_id: str, model: str, key: str, vectors: bytes
    ) -> list[Write]:
        """The same for a segment's vectors."""
        return self._writes(user, conversation_id, _vector_key(model, key), {}, vectors)

    def _writes(
        self, user: str, conversation_id: str, sk: str, more: Mapping[str, Any], packed: bytes
    ) -> list[Write]:
        pk = partition(user, conversation_id)
        item = {"pk": pk, "sk": sk, **more}
        if len(packed) <= INLINE_LIMIT:
            return [put_absent(sk, self.table, {**item, "z": packed})]
        body = object_of(pk, packed)
        return [body, put_absent(sk, self.table, {**item, "body": body.pointer})]

    def _packed(self, items: Sequence[Item]) -> list[bytes]:
        """The data in the items, or in the objects that they point to, which are read in parallel."""
        pointers = [item["body"] for item in items if "body" in item]
        if not pointers:
            return [item["z"] for item in items]
        with ThreadPoolExecutor(_OBJECTS_AT_ONCE) as pool:
            loaded = dict(zip(pointers, pool.map(self.bodies.load_object, pointers), strict=True))
        return [loaded[item["body"]] if "body" in item else item["z"] for item in items]


def _vector_key(model: str, key: str) -> str:
    """The sort key; it has the model, because vectors of two models are never compared."""
    return f"V#{hashlib.sha256(model.encode()).hexdigest()[:12]}#{key}"


def _segment(item: Item, packed: bytes) -> Segment:
    data = zlib.decompress(packed)
    (length,) = struct.unpack_from("<I", data)
    passages = load(tuple[Passage, ...], data[4 : 4 + length])
    return Segment(item["sk"].removeprefix("K#"), item["through"], passages, data[4 + length :])
