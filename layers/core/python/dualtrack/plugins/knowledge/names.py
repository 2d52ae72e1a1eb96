"""What documents and collections are called. Nothing here loads what reads or searches them."""

from __future__ import annotations

import hashlib
from typing import Final

from dualtrack.storage.owned_corpora import folded
from dualtrack.text import clean, one_line

KIND: Final = "documents"
"""The kind of these corpora."""

TITLE_CHARACTERS: Final = 300


def shown_title(text: str) -> str:
    """A title as it is kept and shown: one clean line."""
    return one_line(clean(text)).strip()[:TITLE_CHARACTERS].strip()


def document_id(collection: str, title: str) -> str:
    """A document's id: it stays when the document is replaced, and no other collection has it."""
    return f"doc_{hashlib.sha256(f'{collection}/{folded(title)}'.encode()).hexdigest()[:26]}"
