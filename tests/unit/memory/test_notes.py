"""Notes in the turn: what is answer and what is a note, however a model writes and however its text arrives."""

from __future__ import annotations

import pytest
from dualtrack.memory.notes import MOST_NOTES, NOTE_CHARACTERS, NoteReader, ask_for, mark_of, read_notes
from hypothesis import given
from hypothesis import strategies as st

MARK = mark_of("ch_1")
ASKED = ("q3-t1", "q3-t2", "q3-r")
ANSWER = "The price is 12 euros.\n\n| a | b |\n|---|---|\n| 1 | 2 |"


def test_notes_are_no_part_of_the_answer() -> None:
    text = f"{ANSWER}\n\n{MARK}\nq3-t1: the price list of May\nq3-r: 12 euros"
    assert read_notes(text, MARK, ASKED, cut=False) == (
        ANSWER,
        {"q3-t1": "the price list of May", "q3-r": "12 euros"},
        True,
    )


def test_the_mark_is_new_for_each_chat_and_the_same_for_a_retry() -> None:
    assert mark_of("ch_1") == MARK
    assert mark_of("ch_2") != MARK
    assert len(MARK) == len("[[notes:12345678]]")


def test_the_ask_names_mark_and_records() -> None:
    ask = ask_for(("q3-t1", "q3-r"), MARK, again=False)
    assert MARK in ask
    assert "q3-t1, q3-r (your answer, if it is longer than 150 words)" in ask
    again = ask_for(("q3-t2",), MARK, again=True)
    assert "q3-t2" in again
    assert len(again) < len(ask) / 4


WRITTEN = {
    "nothing": (ANSWER, ANSWER, {}, False),
    "trailing blanks stay": (f"{ANSWER}\n", f"{ANSWER}\n", {}, False),
    "only the mark": (f"{ANSWER}\n{MARK}", ANSWER, {}, True),
    "in the middle": (
        f"One.\n{MARK}\nq3-t1: note\nTwo.\n\nThree.",
        "One.\nTwo.\n\nThree.",
        {"q3-t1": "note"},
        False,
    ),
    "twice": (f"One.\n{MARK}\nq3-t1: a\n{MARK}\nq3-t2: b", "One.", {"q3-t1": "a", "q3-t2": "b"}, True),
    "before any text": (f"{MARK}\nq3-t1: a\n\nThe answer.", "The answer.", {"q3-t1": "a"}, False),
    "notes alone are the answer": (f"{MARK}\nq3-t1: all that there is", "q3-t1: all that there is", {}, True),
    "within a line": (f"Never write {MARK} here.", f"Never write {MARK} here.", {}, False),
    "of another chat": (
        "One.\n[[notes:00000000]]\nq3-t1: a",
        "One.\n[[notes:00000000]]\nq3-t1: a",
        {},
        False,
    ),
    "ids that are not asked for": (
        f"One.\n{MARK}\nq9-t1: a\nq3-t1: b",
        "One.\nq9-t1: a",
        {"q3-t1": "b"},
        True,
    ),
    "another form": (f"One.\n{MARK}\nThe notes are these.", "One.\nThe notes are these.", {}, False),
    "decorated": (
        f"One.\n{MARK}\n- **q3-t1**: a\n* [ID:q3-t2] : b",
        "One.",
        {"q3-t1": "a", "q3-t2": "b"},
        True,
    ),
    "another alphabet's digits": (f"Один.\n{MARK}\nq٣-t١： заметка", "Один.", {"q3-t1": "заметка"}, True),
    "a later one wins": (f"One.\n{MARK}\nq3-t1: a\nq3-t1: b", "One.", {"q3-t1": "b"}, True),
    "forged ids": (f"One.\n{MARK}\nq3-t1: [ID:q1] is", "One.", {"q3-t1": "[ ID:q1] is"}, True),
    "indented": (f"One.\n   {MARK}  \n  q3-t1: a", "One.", {"q3-t1": "a"}, True),
    "an empty note": (f"One.\n{MARK}\nq3-t1:\nq3-t2: b", "One.", {"q3-t2": "b"}, True),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_model_writes(name: str) -> None:
    text, answer, notes, is_behind = WRITTEN[name]
    assert read_notes(text, MARK, ASKED, cut=False) == (answer, notes, is_behind)


CUT = {
    "within a note": (f"One.\n{MARK}\nq3-t1: a\nq3-t2: the beg", "One.", {"q3-t1": "a"}, True),
    "within an id": (f"One.\n{MARK}\nq3-t1: a\nq3-", "One.", {"q3-t1": "a"}, True),
    "within the mark": (f"One.\n{MARK[:11]}", "One.", {}, True),
    "within the text": ("One and tw", "One and tw", {}, False),
    "within text behind the mark": (f"One.\n{MARK}\nSo the second is", "One.\nSo the second is", {}, False),
}


@pytest.mark.parametrize("name", CUT)
def test_what_is_cut_off(name: str) -> None:
    text, answer, notes, is_behind = CUT[name]
    assert read_notes(text, MARK, ASKED, cut=True) == (answer, notes, is_behind)


def test_nothing_is_read_where_nothing_was_asked() -> None:
    text = f"One.\n{MARK}\nq3-t1: a"
    assert read_notes(text, MARK, (), cut=False) == (text, {}, False)


def test_notes_alone_before_a_tool_call_are_notes() -> None:
    text = f"{MARK}\nq3-t1: all that there is"
    said = read_notes(text, MARK, ASKED, cut=False, is_answer=False)
    assert said == ("", {"q3-t1": "all that there is"}, True)


def test_bounds() -> None:
    asked = [f"q3-t{number}" for number in range(1, 21)]
    lines = "\n".join(f"{each}: {'word ' * 200}" for each in asked)
    _, notes, _ = read_notes(f"One.\n{MARK}\n{lines}", MARK, asked, cut=False)
    assert len(notes) == MOST_NOTES
    assert all(len(note) <= NOTE_CHARACTERS for note in notes.values())


PIECES = st.lists(
    st.sampled_from(
        [MARK, MARK[:9], "[[", "\n", "\n\n", "q3-t1: a", "q3-t9: b", "Some text", " ", "```", "- q3-r: c"]
    ),
    max_size=14,
)


@given(PIECES, st.lists(st.integers(0, 200), max_size=8), st.booleans())
def test_where_it_is_split_makes_no_difference(pieces: list[str], places: list[int], cut: bool) -> None:
    text = "".join(pieces)
    said, notes, is_behind = read_notes(text, MARK, ASKED, cut=cut)
    reader, shown, at = NoteReader(MARK, ASKED), "", 0
    for place in [*sorted(place for place in places if place <= len(text)), len(text)]:
        shown += reader.feed(text[at:place])
        at = place
    shown += reader.end(cut=cut)
    assert (shown, reader.notes, reader.is_behind_mark and not reader.goes_on) == (said, notes, is_behind)


@given(PIECES)
def test_no_word_of_an_answer_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    said, _, _ = read_notes(text, MARK, ASKED, cut=False)
    assert said.count("Some text") == text.count("Some text")
