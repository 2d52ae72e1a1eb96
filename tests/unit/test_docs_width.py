"""The prose of the documents has one width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.drivers.documents import DOCUMENTS, ROOT
from tests.drivers.wrap_docs import paragraphs, too_long, wrapped

if TYPE_CHECKING:
    from pathlib import Path

LONG = "word " * 40
BROKEN = "word " * 24


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_of_prose_is_too_long(path: Path) -> None:
    long = [
        line
        for prose, passage in paragraphs(path.read_text())
        if prose and too_long(passage)
        for line in passage
    ]
    assert long == [], "uv run --group test python -m tests.drivers.wrap_docs"


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        (f"| {LONG} |\n", True),
        (f"```\n{LONG}\n```\n", True),
        (f"    {LONG}\n", True),
        (f"# {LONG}\n", True),
        (f"https://example.org/{'x' * 130}\n", True),
        ("Short.\n\nShort.\n", True),
        (f"{LONG}\n", False),
        (f"- {LONG}\n", False),
        (f"Short.\n{LONG}\n", False),
    ],
)
def test_what_is_wrapped(text: str, *, stays: bool) -> None:
    assert (wrapped(text) == text) is stays


def test_words_and_items_stay_as_they_were() -> None:
    text = f"1. {LONG}\n   and more\n2. next\n   - {LONG}\n\nThe end.\n"
    new = wrapped(text)
    assert new.split() == text.split()
    assert [line.split("word")[0] for line in new.splitlines() if line] == [
        "1. ",
        "   ",
        "2. next",
        "   - ",
        "     ",
        "The end.",
    ]
    assert wrapped(new) == new


def test_no_line_begins_an_item_that_was_none() -> None:
    new = wrapped("a - 1. # " * 60)
    assert {line[0] for line in new.splitlines()} == {"a"}
