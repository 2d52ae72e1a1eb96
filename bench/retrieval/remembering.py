"""The local model for benches of retrieval: its vectors are kept between runs and come by the product's client."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dualtrack.knowledge import minilm
from dualtrack.knowledge.voyage import VoyageEmbedder

from bench.retrieval.corpus import WORK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.servers.voyage import FakeVoyage

TOKENIZER = Path(__file__).resolve().parents[2] / "functions" / "embed" / "tokenizer.json"


class RememberingModel:
    """The local model, with its vectors kept on disk between runs."""

    def __init__(self) -> None:
        WORK.mkdir(parents=True, exist_ok=True)
        self._known = sqlite3.connect(WORK / f"{minilm.NAME}.sqlite", timeout=60, check_same_thread=False)
        self._known.execute("CREATE TABLE IF NOT EXISTS vectors (text_hash TEXT PRIMARY KEY, vector BLOB)")
        self._model: minilm.MiniLm | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], _: str | None = None) -> list[list[float]]:
        """One vector a text, in order."""
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        with self._lock:
            fresh = {
                key: self._made(text) for key, text in zip(keys, texts, strict=True) if not self._kept(key)
            }
            with self._known:
                self._known.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", fresh.items())
            return [np.frombuffer(fresh.get(key) or self._kept(key), dtype="<f4").tolist() for key in keys]

    def _made(self, text: str) -> bytes:
        self._model = self._model or minilm.load(TOKENIZER)
        return self._model.embed(text)

    def _kept(self, key: str) -> bytes:
        row = self._known.execute("SELECT vector FROM vectors WHERE text_hash = ?", (key,)).fetchone()
        return bytes(row[0]) if row else b""


async def embedded(
    texts: Sequence[str], questions: Sequence[str], voyage: FakeVoyage
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Vectors of the texts and of the questions, through the product's client."""
    embedder = VoyageEmbedder(voyage.api_key, voyage.url, "all-MiniLM-L6-v2")
    try:
        return (
            await embedder.embed(texts, "document", 7_200),
            await embedder.embed(questions, "query", 7_200),
        )
    finally:
        await embedder.close()
