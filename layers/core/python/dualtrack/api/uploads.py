"""Files of a message as the API takes them: in the request, or by an upload before it (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api.corpora import signed_put
from dualtrack.chat.attached_files import as_kept, decoded_file, within_limit
from dualtrack.chat.uploaded_files import UPLOAD_SECONDS, Reference, announce, fetched, usable
from dualtrack.clock import iso
from dualtrack.ids import new_message_upload_id
from dualtrack.message_files import clean_name
from dualtrack.storage.uploads import Upload, object_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack import answers
    from dualtrack.api.corpora import CorpusServices
    from dualtrack.api.models import AttachmentBody, UploadBody
    from dualtrack.chat.attached_files import File
    from dualtrack.storage.stores import ErasureStores


def announced_json(
    stores: ErasureStores, services: CorpusServices, user: str, body: UploadBody
) -> answers.Upload:
    """An address for this file, for an hour. Raises 413, 429."""
    expires = int(stores.clock()) + UPLOAD_SECONDS
    upload = Upload(
        new_message_upload_id(),
        body.media_type,
        body.bytes,
        clean_name(body.name or ""),
        body.sha256 or "",
        expires,
    )
    announce(stores, user, upload)
    url, headers = signed_put(
        services, object_key(user, upload.upload_id), upload.size, upload.sha256, UPLOAD_SECONDS
    )
    return {
        "upload_id": upload.upload_id,
        "name": upload.name,
        "method": "PUT",
        "url": url,
        "headers": headers,
        "expires_at": iso(expires),
    }


def references_in(attachments: Sequence[AttachmentBody]) -> list[Reference]:
    """The uploads that a message names."""
    return [
        Reference(place, sent.upload_id, sent.media_type or "", sent.name or "")
        for place, sent in enumerate(attachments)
        if sent.upload_id
    ]


def files_in(stores: ErasureStores, user: str, attachments: Sequence[AttachmentBody]) -> tuple[File, ...]:
    """The files of a message, in order. Raises 400, 413, and what its uploads are refused with: every reason to refuse
    one is looked for before any bytes are read."""
    named = references_in(attachments)
    uploads = dict(zip((reference.place for reference in named), usable(stores, user, named), strict=True))
    own = {
        place: decoded_file(f"attachments.{place}", sent.media_type or "", sent.data, sent.name or "")
        for place, sent in enumerate(attachments)
        if sent.data is not None
    }
    within_limit(tuple(own.values()))
    own |= {
        reference.place: fetched(stores, user, reference, uploads[reference.place]) for reference in named
    }
    return as_kept(tuple(own[place] for place in sorted(own)))
