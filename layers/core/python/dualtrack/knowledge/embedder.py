"""What an embedder is: `dualtrack.knowledge.voyage` with a key, `dualtrack.knowledge.local_embedder` without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

InputType = Literal["query", "document"]


class Embedder(Protocol):
    """Texts to little-endian float32 vectors; raises `Degraded` if it fails."""

    @property
    def model(self) -> str:
        """The name that identifies its vectors."""

    async def embed(self, texts: Sequence[str], input_type: InputType, timeout: float) -> tuple[bytes, ...]:
        """One vector per text, in order."""

    async def close(self) -> None:
        """Close the connections."""
