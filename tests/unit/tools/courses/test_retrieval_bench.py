"""What the course retrieval is measured with: the sample courses' labels, and figures that can be reckoned by hand."""

from __future__ import annotations

import math

import pytest

from tests.bench.course_retrieval import figures
from tests.bench.courses.corpora import SAMPLES, Question, samples

QUESTION = Question("?", {"a": 2, "b": 1})


def held(*labels: str) -> list[frozenset[str]]:
    """Chunks by the labels that they meet, one letter each."""
    return [frozenset(one) for one in labels]


def test_a_passage_that_two_chunks_hold_counts_once_and_the_second_takes_a_place() -> None:
    found = figures([0, 1, 2], held("a", "a", "b"), QUESTION)

    assert found == {"nDCG@5": pytest.approx((3 + 1 / 2) / (3 + 1 / math.log2(3))), "recall@5": 1.0}


def test_one_chunk_that_holds_both_passages_is_the_best_there_is() -> None:
    assert figures([0, 1], held("ab", ""), QUESTION) == {"nDCG@5": 1.0, "recall@5": 1.0}


def test_only_the_first_five_hits_count() -> None:
    assert figures([1, 2, 3, 4, 5, 0], held("a", "", "", "", "", "b"), QUESTION)["recall@5"] == 0.5


def test_every_label_of_the_sample_courses_names_one_place() -> None:
    whole = "\n".join(file.read_text() for file in SAMPLES.glob("*.[tm]*"))
    asked = samples().questions

    assert len({one.text for one in asked}) == len(asked) >= 60
    assert [label for one in asked for label in one.relevant if whole.count(label) != 1] == []
    assert all(set(one.relevant.values()) <= {1, 2} and 2 in one.relevant.values() for one in asked)


def test_a_label_holds_however_the_text_is_cut() -> None:
    corpus = samples()
    chunks = corpus.chunks

    missed = [
        label
        for question in corpus.questions
        for label in question.relevant
        if not any(label in corpus.labels(chunk, question) for chunk in chunks)
    ]
    assert missed == []
