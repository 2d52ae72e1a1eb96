"""Large files of a message come before it: announced, put to a signed address, then named by the message, once.

announced (429 from the sixth open one on) ─► put ─► named by a message: 404 unknown or another user's, 410 expired,
409 used or not put yet, 400 other bytes than announced ─► used in the transaction that admits the chat

A refused chat leaves its uploads as they were; one that could not be started opens them again. The sweep takes away
what has expired.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from dualtrack.chat.attached_files import checked_file
from dualtrack.errors import ApiError, Contended, Gone, invalid_request, not_found
from dualtrack.media import most_bytes
from dualtrack.message_files import UPLOADED_BYTES, is_text_type
from dualtrack.storage.uploads import MOST_OPEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.attached_files import File
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import ErasureStores
    from dualtrack.storage.uploads import Upload

UPLOAD_SECONDS: Final = 3_600
"""How long an upload can be put and used."""

_WAIT_SECONDS: Final = 300
"""When somebody with too many open uploads may ask again: the sweep's interval."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An upload as a message names it: its ``place`` among the attachments, and what it says in place of what was
    announced."""

    place: int
    upload_id: str
    media_type: str = ""
    name: str = ""

    @property
    def said(self) -> str:
        """The beginning of a refusal."""
        return f"attachments.{self.place}"


def announce(stores: ErasureStores, user: str, upload: Upload) -> None:
    """Note an upload. Raises 413 for a type that has a lower limit, 429 for the sixth that is open."""
    most = UPLOADED_BYTES if is_text_type(upload.media_type) else most_bytes(upload.media_type)
    if upload.size > most:
        raise ApiError("too_large", f"A file of type {upload.media_type} may have at most {most:,} bytes.")
    if not stores.uploads.announce(user, upload):
        raise ApiError(
            "rate_limited",
            f"At most {MOST_OPEN} uploads may be open: use one in a message, or wait until one has expired, an hour "
            "after it was announced.",
            {"retry_after": _WAIT_SECONDS},
        )


def usable(stores: ErasureStores, user: str, named: Sequence[Reference]) -> list[Upload]:
    """The uploads that a message names, which is in time and the first to do so. Raises 404, 409, 410, 413."""
    found: dict[str, Upload] = {}
    for reference in named:
        upload = stores.uploads.find(user, reference.upload_id)
        if upload is None:
            raise not_found(f"{reference.said}: there is no such upload.")
        if upload.used or upload.upload_id in found:
            raise ApiError(
                "upload_used", f"{reference.said}: the upload is used already. Upload the file again."
            )
        if upload.expires <= stores.clock():
            raise ApiError("expired", f"{reference.said}: the upload has expired. Upload the file again.")
        found[upload.upload_id] = upload
    if sum(upload.size for upload in found.values()) > UPLOADED_BYTES:
        raise ApiError("too_large", "Uploaded files of a message may have at most 50 MB in total.")
    return [*found.values()]


def fetched(stores: ErasureStores, user: str, reference: Reference, upload: Upload) -> File:
    """The file of an upload. Raises 400 if it is not what was announced, 409 if nothing was put."""
    try:
        data = stores.uploads.data(user, upload)
    except Gone:
        raise ApiError(
            "upload_missing", f"{reference.said}: nothing was put to the upload's address yet."
        ) from None
    if data is None or (upload.sha256 and hashlib.sha256(data).hexdigest() != upload.sha256):
        raise invalid_request(f"{reference.said}: the bytes that were put are not those that were announced.")
    return checked_file(
        reference.said, reference.media_type or upload.media_type, data, reference.name or upload.name
    )


def use(stores: ErasureStores, named: Sequence[Reference], chat: Chat) -> list[Action]:
    """What the transaction that admits the chat writes of its uploads. Raises as `usable` does, if they were used
    meanwhile."""
    return stores.uploads.use_actions(chat.user, usable(stores, chat.user, named), chat.chat_id)


def reopen(stores: ErasureStores, named: Sequence[Reference], chat: Chat) -> None:
    """A chat that could not be started has used none."""
    stores.uploads.reopen(chat.user, [reference.upload_id for reference in named], chat.chat_id)


def discard(stores: ErasureStores, user: str, named: Sequence[Reference]) -> None:
    """Take bytes and names from uploads that were used. What fails here the sweep does."""
    with contextlib.suppress(ClientError, Contended):
        stores.uploads.strip(user, [reference.upload_id for reference in named])


def sweep_uploads(stores: ErasureStores, seconds: float) -> int:
    """Take away what has expired, within ``seconds``; returns how many there were."""
    ends, seen = time.monotonic() + seconds, 0
    for user, upload_id in stores.uploads.expired(stores.clock()):
        if time.monotonic() > ends:
            break
        stores.uploads.forget(user, upload_id)
        seen += 1
    return seen
