"""Parts of a long text in few words."""

from __future__ import annotations

import pytest
from dualtrack.memory.condensed import CONDENSED_LIMIT, condensed
from dualtrack.memory.passages import RECORD_LIMIT, windows
from dualtrack.memory.query_index import PASSAGE, SPOTS, index_of
from dualtrack.memory.records import Record

COMMON = "The server reads its settings from the file. "
ODD = "Marmots have chewed through the fibre cable. "
AT = "2026-11-23T00:00:00.000Z"


def test_the_rarest_sentences_stand_for_a_part_in_their_order() -> None:
    text = COMMON * 200 + ODD + COMMON * 200 + "Whose parrot is that? " + COMMON * 100
    first, second = condensed(text, [(0, len(text) // 2), (len(text) // 2, len(text))])
    assert ODD.strip() in first
    assert "parrot" in second
    assert len(first) <= CONDENSED_LIMIT


@pytest.mark.parametrize(
    "text", ["", "x" * 5_000, "a.b!" * 2_000, "\n" * 5_000, "{" + '"key":1,' * 900 + "}"]
)
def test_any_text_is_condensed(text: str) -> None:
    assert all(len(part) <= CONDENSED_LIMIT for part in condensed(text, [(0, 2_500), (2_500, RECORD_LIMIT)]))


@pytest.mark.parametrize("length", [100, 1_700, 5_000, 300_000])
def test_the_parts_of_a_record_cover_it(length: int) -> None:
    record = Record("q1-r", "message", "assistant", "word " * (length // 5), AT)
    index = index_of([record], None)
    spots = index.spots()
    assert [spot.offset for spot in spots[:1]] == [PASSAGE]
    parts = spots[1:]
    assert len(parts) == min(SPOTS, len(list(windows(index.passages[0], record.content))))
    assert [part.end for part in parts[:-1]] == [part.offset for part in parts[1:]]
    assert not parts or (parts[0].offset, parts[-1].end) == (0, RECORD_LIMIT)
