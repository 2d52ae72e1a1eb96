"""Chunks: 800 characters, whole sentences, up to 100 characters of overlap, and no word lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from dualtrack.tools.courses.chunking import OVERLAP, chunks_of, pieces, sentence_ends, spans
from dualtrack.tools.courses.values import Course, Lesson, LessonChunk, embedded_text
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.sampled_from(
    ["word", "Dr.", "e.g.", "3.14", "end.", "End!", "`a. B`", "```\nx = 1. Y\n```", "\n\n", "\n", "\n1. ", "    code. Here\n", "x" * 900, "。"]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=300).map(" ".join) | st.text(max_size=3_000)


@given(TEXTS)
def test_pieces_cover_the_text_in_order_and_are_small(text: str) -> None:
    bounds = list(spans(text))
    assert all(0 < end - start <= 800 for start, end in bounds)
    assert [0, *(end for _, end in bounds)][-1] == len(text)
    for (before, end), (start, later) in pairwise(bounds):
        assert before < start <= end < later
        assert end - start <= 100


@given(st.lists(st.integers(20, 250), min_size=1, max_size=60))
def test_the_overlap_is_whole_sentences_of_at_most_100_characters(lengths: list[int]) -> None:
    text = " ".join(f"S{n} {'a' * length}." for n, length in enumerate(lengths))
    for (_, before), (start, _) in pairwise(spans(text)):
        assert before - start <= 100
        assert text[start] == "S"


def test_a_short_sentence_at_the_end_is_repeated() -> None:
    text = f"{'First. ' * 110}Last words here. Then more follows. {'More. ' * 100}"
    first, second, *_ = pieces(text)
    assert first[-20:].split()[-1] in second[:120]
    assert any(second.startswith(first[-back:]) for back in range(5, OVERLAP + 1))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two.", ["One. ", "Two."]),
        ("Dr. Brandvik teaches. He is kind.", ["Dr. Brandvik teaches. ", "He is kind."]),
        ("Use a list, e.g. Python's. Or not.", ["Use a list, e.g. Python's. ", "Or not."]),
        ("J. Smith came. So did I. We left.", ["J. Smith came. ", "So did I. ", "We left."]),
        ("It is 3.14 or so. Fine.", ["It is 3.14 or so. ", "Fine."]),
        ("Run a.py now. It ends.", ["Run a.py now. ", "It ends."]),
        ("What? Yes! “Good.” So.", ["What? ", "Yes! ", "“Good.” ", "So."]),
        ("Steps:\n1. First do. Then\n2. Second.", ["Steps:\n1. First do. ", "Then\n2. Second."]),
        ("Wait etc. and so on. Done.", ["Wait etc. and so on. ", "Done."]),
        ("See `a. B` there. End.", ["See `a. B` there. ", "End."]),
        ("```\na = 1. B\n\nc. D\n```\nText. End.", ["```\na = 1. B\n\nc. D\n```\nText. ", "End."]),
        ("One\n\nTwo", ["One\n\n", "Two"]),
    ],
)
def test_where_sentences_end(text: str, sentences: list[str]) -> None:
    ends = sentence_ends(text)
    assert [text[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end] == sentences


def test_chunks_count_through_the_course_and_never_cross_lessons() -> None:
    course = Course(
        "A",
        "",
        "",
        (
            Lesson(None, "", "", "Welcome."),
            Lesson(0, "B", "", "One sentence here. " * 60),
            Lesson(7, "C", "", ""),
            Lesson(8, "D", "", "Last."),
        ),
    )
    chunks = chunks_of(course)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.lesson_number for chunk in chunks] == [None, 0, 0, 8]
    assert chunks[-1] == LessonChunk("A", 8, 3, "Last.")


def test_the_embedded_text_names_its_course_and_lesson() -> None:
    assert embedded_text(LessonChunk("A", 5, 0, "Text.")) == "Course A Lesson 5 content: Text."
    assert embedded_text(LessonChunk("A", None, 0, "Text.")) == "Course A content: Text."
