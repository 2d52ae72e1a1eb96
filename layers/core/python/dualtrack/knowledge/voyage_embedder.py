"""Voyage's embedder if there is a key; its client (`dualtrack.knowledge.voyage`) is loaded only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.settings import Settings


def voyage_embedder(settings: Settings, api_key: str) -> Embedder | None:
    """Voyage's embeddings; None without a key."""
    if not api_key:
        return None
    from dualtrack.knowledge.voyage import VoyageEmbedder  # noqa: PLC0415 - half a second, if used

    return VoyageEmbedder(api_key, settings.voyage_base_url, settings.dualtrack_embedding_model)
