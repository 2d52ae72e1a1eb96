"""What the search remembers, shared by all users: public documentation and numbers made from text.

Keys are hashes, so no question can be read from the table. ``response#…`` holds a Context7 body,
``embedding#…`` a vector (raw float32), ``plan#…`` which library a question led to and which response
keys (never words of the question). Items past their ``ttl`` are not read, whether or not DynamoDB has
deleted them yet.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage import dynamo
from dualtrack.tools.documentation.context7 import Page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock

_SORT: Final = "v1"
_MAX_BODY: Final = 380_000
"""Bytes; DynamoDB's item limit is 400 KB."""
_MAX_PLAIN: Final = 16_000_000
_WRITE_BATCH: Final = 25
_WRITE_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class Cache:
    """Batched reads and writes of the cache table. Blocking: call it in a thread."""

    client: DynamoDBClient
    table: str
    clock: Clock

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Live entries by key; what is missing or expired is left out."""
        wanted = [{"pk": key, "sk": _SORT} for key in dict.fromkeys(keys)]
        items = dynamo.batch_get(self.client, self.table, wanted) if wanted else []
        now = self.clock()
        return {item["pk"]: item["body"] for item in items if item.get("ttl", 0) > now and "body" in item}

    def put_many(self, entries: Mapping[str, bytes], seconds: int) -> None:
        """Remember entries for so many seconds. What is too large is left out, and what DynamoDB
        keeps throttling is dropped: it is a cache.
        """
        expires = int(self.clock()) + seconds
        items = [
            {"pk": key, "sk": _SORT, "body": body, "ttl": expires}
            for key, body in entries.items()
            if len(body) <= _MAX_BODY
        ]
        pause = dynamo.Pause()
        for batch in _batched(items, _WRITE_BATCH):
            pending: Any = {self.table: [{"PutRequest": {"Item": dynamo.to_wire(item)}} for item in batch]}
            for attempt in range(_WRITE_ATTEMPTS):
                pending = self.client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
                if not pending:
                    break
                pause(attempt)


def response_key(address: str, path: str, params: Mapping[str, str]) -> str:
    """Key of a Context7 answer: the server's address, the path and every parameter."""
    return _key("response", address, path, *(f"{name}={params[name]}" for name in sorted(params)))


def embedding_key(model: str, input_type: str, text: str) -> str:
    """Key of a vector: the model, the kind of input and the very text."""
    return _key("embedding", model, input_type, text)


def plan_key(*parts: str) -> str:
    """Key of what a question led to."""
    return _key("plan", *parts)


def packed_page(page: Page) -> bytes:
    """A page, compressed."""
    return zlib.compress((b"j" if page.is_json else b"t") + page.text.encode())


def unpacked_page(body: bytes) -> Page | None:
    """The page again; None for bytes that are none (an older or damaged entry)."""
    plain = _inflated(body)
    return Page(plain[1:].decode(errors="replace"), plain[:1] == b"j") if plain else None


def packed_json(value: Any) -> bytes:
    """A JSON value, compressed."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode())


def unpacked_json(body: bytes) -> Any:
    """The JSON value again, or None."""
    try:
        return json.loads(_inflated(body))
    except ValueError:
        return None


def _inflated(body: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(body, _MAX_PLAIN)
    except zlib.error:
        return b""


def _key(kind: str, *parts: str) -> str:
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{kind}#{digest}"


def _batched(items: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
