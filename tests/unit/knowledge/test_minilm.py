"""The local embedding model: its vectors, and that its tokenizer is the documented one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dualtrack.knowledge.local_embedder import LOCAL_MODEL
from dualtrack.knowledge.minilm import DIMENSIONS, MAX_CHARACTERS, NAME, MiniLm, load

FUNCTION = Path(__file__).parents[3] / "functions" / "embed"


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return load(FUNCTION / "tokenizer.json")


def closeness(model: MiniLm, question: str, answer: str) -> float:
    first, second = (np.frombuffer(model.embed(text), "<f4") for text in (question, answer))
    return float(first @ second)


def test_the_tokenizer_is_the_one_of_the_notice() -> None:
    (documented,) = re.findall(r"`([0-9a-f]{64})`", (FUNCTION / "NOTICE.md").read_text())
    assert hashlib.sha256((FUNCTION / "tokenizer.json").read_bytes()).hexdigest() == documented


def test_client_and_model_agree_on_the_name() -> None:
    assert LOCAL_MODEL == NAME


def test_a_vector_has_unit_length_and_its_dimensions(model: MiniLm) -> None:
    for text in ("What is prompt caching?", "", " ", "日本語", "\x00\ud7ff💡", "word " * 4_000):
        vector = np.frombuffer(model.embed(text), "<f4")
        assert vector.shape == (DIMENSIONS,)
        assert abs(float(vector @ vector) - 1) < 1e-5


def test_a_text_of_the_same_meaning_is_closer_than_one_with_shared_words(model: MiniLm) -> None:
    question = "How do I log in to my account?"
    meant = "Signing on needs a user name and a password."
    shares_words = "How do I count the pages in my book?"
    assert closeness(model, question, meant) > closeness(model, question, shares_words)


def test_only_the_beginning_of_a_megabyte_is_tokenised(model: MiniLm) -> None:
    """All of it would take seconds."""
    read: list[int] = []

    class Counting:
        def encode(self, text: str) -> Any:
            read.append(len(text))
            return model.tokenizer.encode(text)

    long = replace(model, tokenizer=Counting()).embed("caching " * 125_000)
    assert read == [MAX_CHARACTERS]
    assert long == model.embed("caching " * 1_000)
