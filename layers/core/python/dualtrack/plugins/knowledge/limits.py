"""How much a collection and a user may have. Ours, by what a search holds in memory (docs/documents.md, "Sizes")."""

from __future__ import annotations

from typing import Final

DOCUMENTS: Final = 10_000
"""Of a collection."""

CHUNKS: Final = 100_000
"""Of a collection."""

COLLECTIONS: Final = 20
"""Of a user."""

SHARED: Final = 100
"""Of the stage."""

FILE_BYTES: Final = 100_000_000
"""Of an upload (ROUND 5)."""

USER_BYTES: Final = 2_000_000_000
"""Of the files of a user's own collections together."""
