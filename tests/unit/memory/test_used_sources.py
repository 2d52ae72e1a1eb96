"""Which sources an answer has used."""

from __future__ import annotations

import pytest
from dualtrack.memory.records import Record, ToolCallDetail
from dualtrack.memory.sources import returned_sources, sources_of, unused_sources
from dualtrack.memory.used_sources import used_sources
from dualtrack.tool_values import Source

TITLES = ("Boats - Lesson 4", "Tables - Lesson 2", "Tides - Lesson 1")
PASSAGES = (
    [
        (
            "Varnish protects planks from water and sunlight. Thin it with turpentine, brush five coats with the grain, and"
            " sand between them with paper of 320."
        )
    ],
    ["Oil protects a table against water. Wipe surplus oil away after ten minutes, or it stays sticky."],
    ["The moon pulls the sea. Spring tides come twice a month, when sun and moon stand in a line."],
)


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        (
            (
                "Thin the varnish with turpentine and brush on five coats along the grain. Between the coats you sand "
                "with 320 paper. That keeps sunlight and water off the planks."
            ),
            {0},
        ),
        ("Wipe off surplus oil after ten minutes so that it is not sticky.", {1}),
        ("Nach zehn Minuten abwischen (Tables, Lesson 2).", {1}),
        ("The materials say nothing about that.", set()),
        ("You are welcome!", set()),
        ("", set()),
    ],
)
def test_a_source_is_what_the_answer_has_words_of(answer: str, used: set[int]) -> None:
    assert used_sources("How do I protect wood from water?", answer, TITLES, PASSAGES) == used


def test_the_words_of_the_question_are_no_sign() -> None:
    question = "What are spring tides, which come twice a month, when sun and moon stand in a line?"
    assert used_sources(question, f"You asked: {question} I do not know.", TITLES, PASSAGES) == set()


def test_a_short_answer_has_the_source_of_its_one_word() -> None:
    assert used_sources("Which grit?", "320.", TITLES, PASSAGES) == {0}


def test_a_source_without_passages_always_counts() -> None:
    assert used_sources("How?", "No idea.", ("Page", TITLES[0]), ([], PASSAGES[0])) == {0}


def record(number: int, text: str, *sources: Source) -> Record:
    call = ToolCallDetail("toolu_1", "search", {}, is_error=False, seconds=0.1, turn=1, sources=sources)
    return Record(f"q1-t{number}", "tool_call", "user", text, "2026-11-28T00:00:00Z", 1, call=call)


def test_a_source_of_two_results_is_used_by_either_and_the_response_keeps_the_rest() -> None:
    moon = Source("Tides", "https://example.org/tides", passages=((0, 5),))
    oil = Source("Oil", "https://example.org/oil", passages=((6, 40),))
    first = record(1, "Tides Wipe surplus oil after ten minutes", moon, oil)
    second = record(
        2, "The moon pulls the sea twice a month", Source(moon.title, moon.url, passages=((0, 36),))
    )
    records = (first, second)

    assert [source.title for source in returned_sources(records)] == ["Tides", "Oil"]
    assert unused_sources(records, "Why?", "The moon pulls the sea.") == (1,)
    response = Record("q1-r", "message", "assistant", "", "", 2, stop="complete", unused=(1,))
    assert [(source.title, source.record_id) for source in sources_of((*records, response))] == [
        ("Tides", "q1-t1")
    ]
    assert len(sources_of(records)) == 2


def test_an_answer_of_which_nothing_can_be_told_has_the_best_source_of_each_result() -> None:
    oil, wax = Source("Oil", "", passages=((0, 20),)), Source("Wax", "", passages=((20, 40),))
    moon = Source("Tides", "", passages=((0, 20),))
    records = (
        record(1, "Wipe surplus oil off. Polish it with wax.", oil, wax),
        record(2, "The moon pulls.", moon),
    )

    assert unused_sources(records, "How?", "Bitte sehr!") == (1,)
    assert unused_sources(records, "How?", " ") == (0, 1, 2)
