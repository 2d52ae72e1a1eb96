"""Files that are put to a signed address (CONTRACT 4): those of a corpus, and those that a message has no room for."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import httpx
from dualtrack.message_files import FILES_BYTES, is_text_type

from dualtrack_stack.cli.client import ApiClient, Unreachable, is_loopback
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack import answers

    from dualtrack_stack.cli.files import LocalFile

_TIMEOUT: Final = httpx.Timeout(120, connect=5)
"""Of one upload."""


def put(upload: answers.Upload, data: bytes) -> None:
    """Put a file to its address; raises `Unreachable`."""
    url = upload["url"]
    try:
        answer = httpx.put(
            url,
            content=data,
            headers=dict(upload["headers"]),
            timeout=_TIMEOUT,
            trust_env=not is_loopback(url),
        )
    except httpx.TransportError as error:
        raise Unreachable(
            f"{upload['name']} could not be uploaded: {error or type(error).__name__}."
        ) from error
    if not answer.is_success:
        raise Unreachable(f"{upload['name']} could not be uploaded: HTTP {answer.status_code}.")


def attachments(
    client: ApiClient, files: Sequence[LocalFile], tell: Callable[[str], None]
) -> list[Mapping[str, str]]:
    """The files as POST /v1/chats takes them. What has no room in the request is uploaded first, of which ``tell`` is
    told, and of text that is not kept. Raises `ClientError`."""
    text = sum(len(file.data) for file in files if is_text_type(file.media_type))
    if text > FILES_BYTES:
        tell(f"The files have {text / 1e6:.1f} MB of text: 4 MB are kept, of the longest the beginning.")
    large = _without_room(files)
    return [
        _uploaded(client, file, tell) if place in large else file.body for place, file in enumerate(files)
    ]


def _without_room(files: Sequence[LocalFile]) -> frozenset[int]:
    """The places of the largest files, without which the others fit into a request."""
    taken, large = 0, set[int]()
    for place, file in sorted(enumerate(files), key=lambda placed: len(placed[1].data)):
        taken += len(file.data)
        if taken > FILES_BYTES:
            large.add(place)
    return frozenset(large)


def _uploaded(client: ApiClient, file: LocalFile, tell: Callable[[str], None]) -> Mapping[str, str]:
    about = {
        "media_type": file.media_type,
        "bytes": len(file.data),
        "name": file.name,
        "sha256": hashlib.sha256(file.data).hexdigest(),
    }
    upload: answers.Upload = client.call("POST", "/v1/uploads", body=about)
    tell(f"{one_line(file.name, 100)}: uploading {len(file.data) / 1e6:.1f} MB")
    put(upload, file.data)
    return {"upload_id": upload["upload_id"]}
