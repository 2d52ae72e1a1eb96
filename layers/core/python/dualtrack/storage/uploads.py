"""Files on their way to a message (`dualtrack.chat.uploaded_files`): announced in the chats table, their bytes in S3.

pk USER#<user>   sk UPLOAD#<id>   what was announced, until when it may be used, and the chat that has used it
                 sk UPLOADS       how many of them are open: neither used nor swept
object           .uploads/<hash of the user>/<id>, signed for the announced bytes

The sweep takes item and object away once an upload has expired (index `open`, its partition `uploads`).
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from dualtrack.errors import Gone
from dualtrack.storage.dynamo import (
    ConditionFailed,
    delete,
    get,
    index_pages,
    one_less,
    one_more,
    put_absent,
    transact,
    update,
)
from dualtrack.storage.open_index import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from dualtrack.storage.dynamo import Action, Item

FOLDER: Final = ".uploads/"
"""The prefix of the objects' keys; no user's id has a dot, so it is no user's prefix (`dualtrack.storage.bodies`)."""

MOST_OPEN: Final = 5
"""Of a user."""

OPEN: Final = "open uploads"
"""The name of the write that counts an upload."""

_LISTED: Final = "uploads"


@dataclass(frozen=True, slots=True)
class Upload:
    """An announced file. ``sha256`` in hex, or empty; ``expires`` in epoch seconds; ``used``: the chat that has it."""

    upload_id: str
    media_type: str
    size: int
    name: str
    sha256: str
    expires: int
    used: str = ""


@dataclass(frozen=True, slots=True)
class UploadStore:
    """Reads, writes and write-actions of uploads."""

    client: DynamoDBClient
    s3: S3Client
    table: str
    bucket: str

    def announce(self, user: str, upload: Upload) -> bool:
        """Note an upload; false if the user has `MOST_OPEN` already."""
        item = {
            **_key(user, upload.upload_id),
            "media_type": upload.media_type,
            "size": upload.size,
            "name": upload.name,
            "sha256": upload.sha256,
            "open": _LISTED,
            "deadline": upload.expires,
        }
        try:
            transact(
                self.client,
                [
                    put_absent("upload", self.table, item),
                    one_more(OPEN, self.table, _count(user), "uploads", MOST_OPEN),
                ],
            )
        except ConditionFailed as lost:
            if OPEN in lost.items:
                return False
            raise
        return True

    def find(self, user: str, upload_id: str) -> Upload | None:
        """The user's upload, expired and used ones too, until they are swept."""
        item = get(self.client, self.table, _key(user, upload_id))
        return _upload_of(item) if item else None

    def data(self, user: str, upload: Upload) -> bytes | None:
        """Its bytes; None if they are not as many as were announced. Raises `Gone` if none have come."""
        try:
            found = self.s3.get_object(Bucket=self.bucket, Key=object_key(user, upload.upload_id))
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            raise Gone("an upload") from error
        return found["Body"].read() if found["ContentLength"] == upload.size else None

    def use_actions(self, user: str, uploads: Sequence[Upload], chat_id: str) -> list[Action]:
        """Use them for this chat, on condition that no other one has, and count them as open no more."""
        if not uploads:
            return []
        free = "attribute_exists(pk) AND attribute_not_exists(used)"
        values = {":less": -len(uploads), ":number": len(uploads)}
        return [
            *(
                update(
                    "upload",
                    self.table,
                    _key(user, upload.upload_id),
                    "SET used = :chat",
                    free,
                    {":chat": chat_id},
                )
                for upload in uploads
            ),
            update(OPEN, self.table, _count(user), "ADD uploads :less", "uploads >= :number", values),
        ]

    def reopen(self, user: str, upload_ids: Sequence[str], chat_id: str) -> None:
        """Open again what this chat has used."""
        if not upload_ids:
            return
        own = {":chat": chat_id}
        values = {":number": len(upload_ids)}
        actions = [
            *(
                update("upload", self.table, _key(user, one), "REMOVE used", "used = :chat", own)
                for one in upload_ids
            ),
            update(OPEN, self.table, _count(user), "ADD uploads :number", "", values),
        ]
        with contextlib.suppress(ConditionFailed):  # it was opened already, or swept
            transact(self.client, actions)

    def strip(self, user: str, upload_ids: Sequence[str]) -> None:
        """Take bytes and names from uploads that were used: the conversation has its own, and is deleted apart."""
        self._delete([object_key(user, upload_id) for upload_id in upload_ids])
        for upload_id in upload_ids:
            blank = update(
                "upload",
                self.table,
                _key(user, upload_id),
                "SET #name = :none",
                "attribute_exists(used)",
                {":none": ""},
                {"#name": "name"},
            )
            with contextlib.suppress(ConditionFailed):  # it was swept
                transact(self.client, [blank])

    def _delete(self, keys: Sequence[str]) -> None:
        if keys:
            listed: Any = [{"Key": key} for key in keys]
            self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": listed, "Quiet": True})

    def expired(self, now: float) -> Iterator[tuple[str, str]]:
        """User and id of each upload that has expired, oldest first."""
        before = ("deadline", int(now))
        for page in index_pages(self.client, self.table, INDEX, _LISTED, before=before):
            for item in page:
                yield item["pk"].removeprefix("USER#"), item["sk"].removeprefix("UPLOAD#")

    def forget(self, user: str, upload_id: str) -> None:
        """Take an expired upload away, bytes first: what a crash leaves is found again. Idempotent."""
        self._delete([object_key(user, upload_id)])
        upload = self.find(user, upload_id)
        if upload is None:
            return
        is_open = "attribute_exists(used)" if upload.used else "attribute_not_exists(used)"
        gone = delete("upload", self.table, _key(user, upload_id), is_open)
        freed = [] if upload.used else [one_less(OPEN, self.table, _count(user), "uploads")]
        with contextlib.suppress(
            ConditionFailed
        ):  # it was used or taken away meanwhile: the next sweep sees to it
            transact(self.client, [gone, *freed])

    def forget_user(self, user: str) -> None:
        """Delete all bytes of the user's uploads; their items go with the user's other ones."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=_folder(user))
        for page in pages:
            self._delete([entry["Key"] for entry in page.get("Contents", [])])


def object_key(user: str, upload_id: str) -> str:
    """Where the bytes are put. The key stands in the address that a client gets, so it does not name the user."""
    return f"{_folder(user)}{upload_id}"


def _folder(user: str) -> str:
    return f"{FOLDER}{hashlib.sha256(user.encode()).hexdigest()[:32]}/"


def _key(user: str, upload_id: str) -> dict[str, str]:
    return {"pk": f"USER#{user}", "sk": f"UPLOAD#{upload_id}"}


def _count(user: str) -> dict[str, str]:
    return {"pk": f"USER#{user}", "sk": "UPLOADS"}


def _upload_of(item: Item) -> Upload:
    return Upload(
        item["sk"].removeprefix("UPLOAD#"),
        item["media_type"],
        item["size"],
        item["name"],
        item["sha256"],
        item["deadline"],
        item.get("used", ""),
    )
