"""What documents and collections are called. Nothing here loads what reads or searches them."""

from __future__ import annotations

import hashlib
from typing import Final
from unicodedata import category

from dualtrack.text import clean, folded_name, one_line

KIND: Final = "documents"
"""The kind of these corpora."""

OF_THE_CHAT: Final = "collections"
"""The facet of a conversation with the ids of the user's own that it may search, divided by blanks."""

TITLE_CHARACTERS: Final = 300


_JOINERS: Final = "\u200c\u200d"
"""Invisible, and part of the spelling of some languages."""

_UNSEEN: Final = frozenset({"Cc", "Cf"})


def shown_title(text: str) -> str:
    """A title as it is kept and shown: one clean line, without marks that hide or turn what is beside them."""
    seen = "".join(c for c in clean(text) if c in _JOINERS or category(c) not in _UNSEEN or c.isspace())
    return one_line(seen).strip()[:TITLE_CHARACTERS].strip()


def document_id(collection: str, title: str) -> str:
    """A document's id: it stays when the document is replaced, and no other collection has it."""
    return f"doc_{hashlib.sha256(f'{collection}/{folded_name(title)}'.encode()).hexdigest()[:26]}"
