"""A fake of the local embedding model, without its function and its weights."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dualtrack.knowledge.vectors import pack

if TYPE_CHECKING:
    from collections.abc import Sequence


class LocalVectors:
    """Texts about cats and pets are close to each other, all others too."""

    model = "local"
    size = 2

    def __init__(self, never: tuple[str, ...] = ()) -> None:
        self.asked: list[Sequence[str]] = []
        self.never = never

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:
        """One vector per text; texts that contain one of ``never`` never return."""
        if any(word in text for word in self.never for text in texts):
            await asyncio.Event().wait()
        self.asked.append(texts)
        return tuple(pack([1.0, 0.1] if "cat" in text or "pet" in text else [0.1, 1.0]) for text in texts)

    async def close(self) -> None:
        """Nothing to close."""
