"""The figures of the retrieval evaluation, on rankings small enough to compute by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bench.retrieval.corpus import HELD_OUT_QUESTIONS, QUESTIONS
from bench.retrieval.metrics import interval, ndcg, recall, reciprocal_rank

if TYPE_CHECKING:
    from pathlib import Path

RELEVANT = {"a": 2, "b": 1}


def test_recall_is_the_share_of_relevant_sections_in_the_ranking() -> None:
    assert recall(["x", "a", "b"], RELEVANT, 2) == 0.5
    assert recall(["x", "a", "b"], RELEVANT, 3) == 1.0


def test_ndcg_is_one_for_the_best_order_and_discounts_by_rank() -> None:
    assert ndcg(["a", "b", "x"], RELEVANT, 6) == 1.0
    assert ndcg(["b", "x", "a"], RELEVANT, 6) == pytest.approx((1 + 3 / 2) / (3 + 1 / math.log2(3)))
    assert ndcg(["x", "a"], RELEVANT, 1) == 0.0


def test_reciprocal_rank_is_that_of_the_first_relevant() -> None:
    assert reciprocal_rank(["x", "b", "a"], RELEVANT) == 0.5
    assert reciprocal_rank(["x"], RELEVANT) == 0.0


def test_the_interval_contains_the_mean_and_is_reproducible() -> None:
    values = [0.0, 1.0] * 30
    mean, low, high = interval(values)

    assert low < mean == 0.5 < high
    assert interval(values) == (mean, low, high)
    assert interval([0.25] * 5) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize("file", [QUESTIONS, HELD_OUT_QUESTIONS], ids=["first", "held out"])
def test_there_are_enough_labelled_questions_about_enough_libraries(file: Path) -> None:
    questions = json.loads(file.read_text())
    assert len({question["question"] for question in questions}) == len(questions) >= 60
    assert min(Counter(question["library"] for question in questions).values()) >= 10
    assert all(
        set(question["relevant"].values()) <= {1, 2} and 2 in question["relevant"].values()
        for question in questions
    )
