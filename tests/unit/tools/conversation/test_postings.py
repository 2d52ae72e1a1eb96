"""The words of records in parts: scores as in documentation search, the best part, windows of any text."""

from __future__ import annotations

import pytest
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.memory.passages import PASSAGE_LIMIT, RECORD_LIMIT, WINDOW, Passage, window_at, windows
from dualtrack.memory.query_index import PASSAGE, QueryIndex, counted
from dualtrack.tools.conversation.postings import matches
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.lists(
    st.sampled_from(["oak", "Cedar", "setAccessToken", "the", "3.14", "été", "mot-clé"]), max_size=12
)


def query(number: int, *records: list[tuple[int, str]]) -> QueryIndex:
    """A query of records, each from its parts."""
    passages = tuple(Passage(f"q{number}-t{at}", "query", "") for at in range(len(records)))
    return QueryIndex(passages, counted(records))


@given(
    st.lists(st.lists(WORDS.map(" ".join), min_size=1, max_size=4), min_size=1, max_size=4),
    WORDS.map(" ".join),
)
def test_words_score_as_in_documentation_search(texts: list[list[str]], question: str) -> None:
    queries = [query(at, *([(PASSAGE, text)] for text in group)) for at, group in enumerate(texts, start=1)]
    ids = [passage.record_id for index in queries for passage in index.passages]
    scores = keyword_scores(question, [text for group in texts for text in group], k1=1.5, b=0.75)
    found = {record_id: match.score for record_id, match in matches(question, queries, 1.5, 0.75).items()}
    expected = {record_id: score for record_id, score in zip(ids, scores, strict=True) if score > 0}
    assert found == pytest.approx(expected)


def test_a_record_is_as_good_as_its_best_part_and_the_best_comes_first() -> None:
    first = query(1, [(PASSAGE, "oak"), (0, "oak and cedar"), (1_100, "nothing")])
    second = query(2, [(PASSAGE, "birch")], [(PASSAGE, "cedar oak cedar"), (0, "cedar oak cedar")])
    found = matches("oak cedar", [first, second], 1.5, 0.75)
    assert list(found) == ["q2-t1", "q1-t0"]
    assert [match.offset for match in found.values()] == [PASSAGE, 0]


def test_nothing_is_found_in_nothing() -> None:
    assert matches("oak", [], 1.5, 0.75) == matches("oak", [query(1)], 1.5, 0.75) == {}
    assert matches("", [query(1, [(PASSAGE, "oak")], [(PASSAGE, "")]), query(2)], 1.5, 0.75) == {}


@given(st.integers(0, 5_000))
def test_every_place_of_a_text_stands_whole_in_a_window(at: int) -> None:
    content = "".join(f"{number:06d} " for number in range(1_000))
    sought = content[at : at + 90]
    passage = Passage("q1-t1", "query", content[:PASSAGE_LIMIT])
    listed = list(windows(passage, content))
    assert any(start <= at and sought.strip() in text for start, text in listed)
    assert all(text == window_at(content, start) for start, text in listed)


def test_a_text_that_its_passage_holds_has_no_windows() -> None:
    assert list(windows(Passage("q1", "query", "Oak\u2028and cedar."), "Oak\u2028and cedar.")) != []
    assert list(windows(Passage("q1", "query", "summary Oak and cedar."), "Oak\nand  cedar.")) == []
    assert list(windows(Passage("q1", "query", ""), "")) == []


def test_no_more_than_the_bound_is_searched() -> None:
    content = "x" * RECORD_LIMIT + "y" * WINDOW
    assert "y" not in "".join(text for _, text in windows(Passage("q1", "query", ""), content))
