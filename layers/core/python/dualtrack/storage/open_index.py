"""The sparse index `open` of the chats table: what somebody has to look at, by kind and by when, its ``deadline``.

open#<shard>      chats that are not done             hooks#<shard>      notices that wait to be told
paused#<shard>    chats that wait for decisions

A plug-in's kind has the plug-in's word; what is told may wait beside its notices.
"""

from __future__ import annotations

import hashlib
import heapq
from typing import TYPE_CHECKING, Final

from dualtrack.storage.dynamo import index_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.dynamo import Item

INDEX: Final = "open"
_SHARDS: Final = 4
"""Partitions of a kind: one takes 1,000 writes a second, so 4 carry 2,000 chats/s."""


def partition_of(kind: str, name: str) -> str:
    """The partition in which a thing with this name is."""
    return f"{kind}#{int(hashlib.sha256(name.encode()).hexdigest()[:4], 16) % _SHARDS}"


def partitions_of(kind: str) -> tuple[str, ...]:
    """All partitions of a kind."""
    return tuple(f"{kind}#{shard}" for shard in range(_SHARDS))


def listed(client: DynamoDBClient, table: str, kind: str, now: int | None = None) -> Iterator[Item]:
    """The keys of what is listed, by deadline; the partitions are read in turn. ``now``: only what is due by then."""
    before = None if now is None else ("deadline", now + 1)
    parts = (
        (item for page in index_pages(client, table, INDEX, part, before=before) for item in page)
        for part in partitions_of(kind)
    )
    return heapq.merge(*parts, key=lambda item: (item["deadline"], item["pk"], item["sk"]))
