"""Any ordinary document as text, with a sign of what is left out (docs/documents.md).

A file is read in a process of its own, so that a hostile one exhausts only that process.
"""

from __future__ import annotations

import json
from typing import Any

from dualtrack.errors import TookTooLong
from dualtrack.plugins.knowledge.documents import Block, DocumentRefused, ReadDocument
from dualtrack.plugins.knowledge.reading.limits import LIMITS, MAX_BYTES
from dualtrack.runtime import bounded_process


def read(name: str, data: bytes, title: str = "") -> ReadDocument:
    """The document in a file of this name and content. Raises `DocumentRefused`."""
    if len(data) > MAX_BYTES:
        raise DocumentRefused(
            f"has {len(data) / 1e6:.1f} MB; at most {MAX_BYTES / 1e6:.0f} MB are taken: divide it"
        )
    if not data.strip():
        raise DocumentRefused("is empty")
    try:
        answer = bounded_process.run(
            "dualtrack.plugins.knowledge.reading.child", (name[-300:], title[:6000]), data, LIMITS
        )
    except bounded_process.Refused as reason:
        raise DocumentRefused(str(reason)) from reason
    except TookTooLong as error:
        raise DocumentRefused(f"takes longer than {LIMITS.seconds} seconds to read: divide it") from error
    except bounded_process.Failed as error:
        raise DocumentRefused(
            "cannot be read within the limits of memory and time: save it anew with the program that made it, or as PDF"
        ) from error
    return _document(json.loads(answer))


def _document(found: dict[str, Any]) -> ReadDocument:
    blocks = tuple(
        Block(text, kind, tuple(headings), page, header)
        for text, kind, headings, page, header in found["blocks"]
    )
    return ReadDocument(
        found["title"], found["kind"], blocks, tuple((what, number) for what, number in found["left_out"])
    )
