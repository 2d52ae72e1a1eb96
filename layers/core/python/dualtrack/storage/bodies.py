"""Bodies: large content is stored under its own id, and records have a pointer to it (DESIGN 2.1).

A text of up to 1 KB is stored in its record. Larger ones are compressed and stored beside the records, or in S3 if
they are still over 200 KB. The id is the content's hash, so writes are idempotent. A step records a list of items and
bodies (`Write`), and only `EventLog.append` (or `write_past`) writes it: first the bodies, then the items that
point to them. A crash in between leaves an orphan, which is deleted with its conversation, but never a record without
its body. If the conversation is deleted between two reads, a reader can find a record without its body: `Gone`.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from dualtrack.errors import Gone
from dualtrack.memory.records import Attachment
from dualtrack.storage.dynamo import Action, batch_get, get, put, put_absent, transact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

INLINE_LIMIT: Final = 1_024
ITEM_LIMIT: Final = 200 * 1_024
_HEADS_AT_ONCE: Final = 100
"""Maximum number of compressed bodies in memory when only their beginnings are read."""


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A body to be written: ``pointer`` is stored in its item, ``packed`` are its compressed bytes."""

    pk: str
    pointer: str
    packed: bytes = field(repr=False)

    @property
    def is_object(self) -> bool:
        """Whether it is stored in S3."""
        return self.pointer.startswith("s3:")


Write = Action | StoredBody
"""A part of what a step records."""


def body_of(pk: str, data: bytes) -> StoredBody:
    """The body of these bytes; deterministic."""
    digest = hashlib.sha256(data).hexdigest()[:40]
    packed = zlib.compress(data)
    in_table = len(packed) <= ITEM_LIMIT
    return StoredBody(pk, f"B#{digest}" if in_table else f"s3:{_object_prefix(pk)}{digest}", packed)


def object_of(pk: str, packed: bytes) -> StoredBody:
    """A body for data that is already compressed or incompressible; always an object in S3."""
    return StoredBody(pk, f"s3:{_object_prefix(pk)}{hashlib.sha256(packed).hexdigest()[:40]}", packed)


def attach(
    pk: str, files: Iterable[tuple[str, bytes]]
) -> tuple[tuple[Attachment, ...], tuple[StoredBody, ...]]:
    """The attachments of files (media type, bytes), and their bodies."""
    listed = [(media_type, len(data), body_of(pk, data)) for media_type, data in files]
    attachments = tuple(Attachment(media_type, size, body.pointer) for media_type, size, body in listed)
    return attachments, tuple(body for _, _, body in listed)


def put_with_text(name: str, table: str, item: Mapping[str, Any], pk: str, text: str) -> list[Write]:
    """The put of an item that must not exist yet, with its ``text`` or the pointer to its ``body``."""
    attributes, body = with_text(pk, text)
    return [*body, put_absent(name, table, {**item, **attributes})]


def with_text(pk: str, text: str) -> tuple[dict[str, str], list[Write]]:
    """The attributes of an item that has the text, and its body if it needs one."""
    data = text.encode()
    if len(data) <= INLINE_LIMIT:
        return {"text": text}, []
    body = body_of(pk, data)
    return {"body": body.pointer}, [body]


def put_packed(name: str, table: str, item: Mapping[str, Any], pk: str, text: str) -> list[Write]:
    """The put of an item that must not exist yet, with its ``text`` compressed, or the pointer to an object."""
    body = body_of(pk, text.encode())
    if body.is_object:
        return [body, put_absent(name, table, {**item, "body": body.pointer})]
    return [put_absent(name, table, {**item, "z": body.packed})]


@dataclass(frozen=True, slots=True)
class BodyStore:
    """Bodies of conversations, by partition ``pk`` (one per conversation)."""

    dynamodb: DynamoDBClient
    s3: S3Client
    table: str
    bucket: str

    def write(self, body: StoredBody) -> None:
        """Store the body in the table or in S3, as its pointer says. Idempotent."""
        if body.is_object:
            key = body.pointer[3:]
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=body.packed, ContentType="application/zlib")
        else:
            transact(self.dynamodb, [self.put_action(body)])

    def put_action(self, body: StoredBody) -> Action:
        """The put of a body that is stored in the table."""
        return put("body", self.table, {"pk": body.pk, "sk": body.pointer, "z": body.packed})

    def write_objects(self, writes: Sequence[Write]) -> list[Action]:
        """Write the bodies that are objects; returns the actions for all other writes."""
        for write in writes:
            if isinstance(write, StoredBody) and write.is_object:
                self.write(write)
        kept = (write for write in writes if not (isinstance(write, StoredBody) and write.is_object))
        return [self.put_action(write) if isinstance(write, StoredBody) else write for write in kept]

    def load(self, pk: str, pointer: str) -> bytes:
        """The bytes of a pointer; raises `Gone`."""
        if pointer.startswith("s3:"):
            return zlib.decompress(self.load_object(pointer))
        key = {"pk": pk, "sk": pointer}
        item = get(self.dynamodb, self.table, key, consistent=False) or get(self.dynamodb, self.table, key)
        if item is None:
            raise Gone(pointer)
        return zlib.decompress(item["z"])

    def load_object(self, pointer: str) -> bytes:
        """The bytes of an object in S3, not unpacked; raises `Gone`.

        S3 reports NoSuchKey only to a role that may list the bucket, and AccessDenied to others: a step's read then
        fails like any other, and its retry finds the chat closed.
        """
        key = pointer.removeprefix("s3:")
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            raise Gone("an object") from error  # its key names the user, and this may be logged

    def load_text(self, pk: str, item: Mapping[str, Any]) -> str:
        """The text of an item written with `put_with_text` or `put_packed`; raises `Gone`."""
        if "text" in item:
            return str(item["text"])
        packed = zlib.decompress(item["z"]) if "z" in item else self.load(pk, item["body"])
        return packed.decode()

    def load_texts(self, pk: str, items: Iterable[Mapping[str, Any]]) -> list[str | None]:
        """`load_text` for many items, with as few requests as possible; None where the body is gone."""
        listed = list(items)
        wanted = {item["body"] for item in listed if item.get("body", "").startswith("B#")}
        cached = {sk: zlib.decompress(z).decode() for sk, z in self._packed(pk, sorted(wanted)).items()}
        return [
            cached.get(item["body"]) if item.get("body") in wanted else self._text_or_none(pk, item)
            for item in listed
        ]

    def load_heads(self, pk: str, items: Sequence[Mapping[str, str]], limit: int) -> list[str | None]:
        """The first ``limit`` characters of many items' texts; None where the body is gone.

        Bodies in S3, over 200 KB compressed, are read one by one.
        """
        wanted = sorted({item["body"] for item in items if item.get("body", "").startswith("B#")})
        heads: dict[str, str] = {}
        for start in range(0, len(wanted), _HEADS_AT_ONCE):
            stored = self._packed(pk, wanted[start : start + _HEADS_AT_ONCE])
            heads |= {sk: _head(z, limit) for sk, z in stored.items()}
        known = set(wanted)
        return [
            item["text"][:limit]
            if "text" in item
            else heads.get(item["body"])
            if item["body"] in known
            else self._head_of_object(item["body"], limit)
            for item in items
        ]

    def delete_objects(self, user: str, conversation_id: str = "", kept: Collection[str] = ()) -> bool:
        """Delete the bodies of a conversation (or of all of a user's) in S3, except those of the pointers ``kept``;
        returns whether there were any. Bodies in the table are deleted with the conversation's other items.
        """
        prefix = _object_prefix(partition(user, conversation_id)) if conversation_id else f"{user}/"
        any_deleted = False
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        for page in pages:
            listed = (entry["Key"] for entry in page.get("Contents", []))
            keys: Any = [{"Key": key} for key in listed if f"s3:{key}" not in kept]
            if keys:
                any_deleted = True
                self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": keys, "Quiet": True})
        return any_deleted

    def _packed(self, pk: str, pointers: Sequence[str]) -> dict[str, bytes]:
        """The bytes of these bodies in the table, by pointer, as far as they are stored. A body never changes, so what
        an eventually consistent read finds is right, at half the price; what it misses is read again."""
        found: dict[str, bytes] = {}
        for consistent in (False, True):
            keys = [{"pk": pk, "sk": sk} for sk in pointers if sk not in found]
            items = batch_get(self.dynamodb, self.table, keys, consistent=consistent)
            found |= {item["sk"]: item["z"] for item in items}
        return found

    def _head_of_object(self, pointer: str, limit: int) -> str | None:
        try:
            return _head(self.load_object(pointer), limit)
        except Gone:
            return None

    def _text_or_none(self, pk: str, item: Mapping[str, Any]) -> str | None:
        try:
            return self.load_text(pk, item)
        except Gone:
            return None


def partition(user: str, conversation_id: str) -> str:
    """The partition of a conversation's records and bodies in the history table."""
    return f"CONV#{user}#{conversation_id}"


def _head(packed: bytes, limit: int) -> str:
    """The first characters of a body; does not unpack the rest."""
    return zlib.decompressobj().decompress(packed, 4 * limit).decode(errors="ignore")[:limit]


def _object_prefix(pk: str) -> str:
    """The S3 prefix of a conversation's bodies, from its partition."""
    return pk.removeprefix("CONV#").replace("#", "/") + "/"
