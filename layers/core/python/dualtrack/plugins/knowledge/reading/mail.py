"""Mail: who wrote to whom, when and about what, then the text; attached documents are counted."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Final

from dualtrack.plugins.knowledge.reading.encodings import decoded
from dualtrack.plugins.knowledge.reading.web import add_page, text_of, tree_of
from dualtrack.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_FIELDS: Final = ("From", "To", "Cc", "Date", "Subject")
_LONGEST_FIELD: Final = 2_000
_DEEPEST: Final = 5


def read_eml(data: bytes, blocks: Blocks) -> Sequence[str]:
    """Adds the message's blocks. Returns its subject."""
    message = email.message_from_bytes(data, _class=EmailMessage, policy=email.policy.default)
    _message(message, blocks, 0)
    return (_field(message, "Subject"),)


def _message(message: EmailMessage, blocks: Blocks, depth: int) -> None:
    heads = ((name, _field(message, name)) for name in _FIELDS)
    blocks.text("\n".join(f"{name}: {value}" for name, value in heads if value))
    _body(message, blocks, depth)


def _field(message: EmailMessage, name: str) -> str:
    """A field, decoded; as it stands if it cannot be."""
    try:
        value = str(message.get(name, ""))
    except Exception:  # noqa: BLE001 - `email` raises anything for a malformed field
        value = next((text for key, text in message.raw_items() if key.lower() == name.lower()), "")
    return one_line(value)[:_LONGEST_FIELD]


def _body(part: EmailMessage, blocks: Blocks, depth: int) -> None:
    kind = part.get_content_type()
    if part.get_content_disposition() == "attachment" or depth > _DEEPEST:
        blocks.leave_out("attachments")
    elif kind == "message/rfc822":
        for inner in _parts(part):
            _message(inner, blocks, depth + 1)
    elif kind == "multipart/alternative":
        _richest(part, blocks, depth)
    elif part.is_multipart():
        for inner in _parts(part):
            _body(inner, blocks, depth + 1)
    elif kind in {"text/plain", "text/html"}:
        _text(part, kind, blocks)
    elif kind.startswith("image/"):
        blocks.leave_out("pictures")
    else:
        blocks.leave_out("attachments")


def _richest(part: EmailMessage, blocks: Blocks, depth: int) -> None:
    """Of the forms of one text, HTML, as it has headings and tables, unless it is empty."""
    forms = list(_parts(part))
    html = next((form for form in reversed(forms) if _has(form, "text/html")), None)
    plain = next((form for form in forms if _has(form, "text/plain")), None)
    chosen = html or plain or (forms[-1] if forms else None)
    if chosen is not None:
        _body(chosen, blocks, depth + 1)


def _has(part: EmailMessage, kind: str) -> bool:
    found = (inner for inner in part.walk() if inner.get_content_type() == kind)
    return any((inner.get_payload(decode=True) or b"").strip() for inner in found)  # type: ignore[union-attr]


def _parts(part: EmailMessage) -> Iterator[EmailMessage]:
    payload = part.get_payload()
    return (
        (inner for inner in payload if isinstance(inner, EmailMessage))
        if isinstance(payload, list)
        else iter(())
    )


def _text(part: EmailMessage, kind: str, blocks: Blocks) -> None:
    content = part.get_payload(decode=True)
    data = content if isinstance(content, bytes) else b""
    declared = part.get_content_charset() or ""
    if kind == "text/plain":
        for paragraph in decoded(data, declared).replace("\r\n", "\n").split("\n\n"):
            blocks.text(paragraph)
    elif (root := tree_of(text_of(data, declared), blocks)) is not None:
        add_page(root, blocks)
