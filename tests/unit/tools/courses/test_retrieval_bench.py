"""The measures of course retrieval: the sample courses' labels, and figures that can be computed by hand."""

from __future__ import annotations

import math

import pytest
from dualtrack.tools.courses.values import Hit, LessonChunk

from bench.course_retrieval import figures, sources_of
from bench.courses.corpora import SAMPLES, Question, samples

QUESTION = Question("?", {"a": 2, "b": 1})


def held(*labels: str) -> list[frozenset[str]]:
    """Chunks by their relevant labels, one letter each."""
    return [frozenset(letters) for letters in labels]


def test_a_passage_in_two_chunks_counts_once_and_the_second_uses_a_rank() -> None:
    scores = figures([0, 1, 2], held("a", "a", "b"), QUESTION)

    assert scores == {
        "nDCG@5": pytest.approx((3 + 1 / 2) / (3 + 1 / math.log2(3))),
        "recall@5": 1.0,
        "MRR": 1.0,
    }


def test_a_chunk_with_both_passages_scores_best() -> None:
    assert figures([0, 1], held("ab", ""), QUESTION) == {"nDCG@5": 1.0, "recall@5": 1.0, "MRR": 1.0}


def test_the_first_relevant_hit_gives_the_reciprocal_rank() -> None:
    assert figures([0, 1, 2], held("", "", "ab"), QUESTION)["MRR"] == pytest.approx(1 / 3)


def test_a_source_is_a_lesson_that_the_answer_used() -> None:
    texts = (
        "Varnish needs thin coats.",
        "Glue sets within an hour.",
        "Press the joint firmly.",
        "Oak is hard.",
    )
    hits = [
        Hit(LessonChunk("A", lesson, 0, text), "") for lesson, text in zip((1, 2, 2, 3), texts, strict=True)
    ]
    relevant = {"A - Lesson 1": frozenset(), "A - Lesson 2": frozenset("a"), "A - Lesson 3": frozenset("b")}

    assert sources_of("How?", None, hits, relevant) == (2, 1)
    assert sources_of("How?", "Press it firmly: the glue sets in an hour.", hits, relevant) == (1, 0)


def test_only_the_first_five_hits_count() -> None:
    assert figures([1, 2, 3, 4, 5, 0], held("a", "", "", "", "", "b"), QUESTION)["recall@5"] == 0.5


def test_every_label_of_the_sample_courses_is_unique() -> None:
    whole = "\n".join(file.read_text() for file in SAMPLES.glob("*.[tm]*"))
    questions = samples().questions

    assert len({question.text for question in questions}) == len(questions) >= 60
    assert [label for question in questions for label in question.relevant if whole.count(label) != 1] == []
    assert all(
        set(question.relevant.values()) <= {1, 2} and 2 in question.relevant.values()
        for question in questions
    )


def test_labels_do_not_depend_on_the_chunking() -> None:
    corpus = samples()
    chunks = corpus.chunks

    missed = [
        label
        for question in corpus.questions
        for label in question.relevant
        if not any(label in corpus.labels(chunk, question) for chunk in chunks)
    ]
    assert missed == []
