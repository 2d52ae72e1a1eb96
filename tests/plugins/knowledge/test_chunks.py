"""Chunks: bounded, whole, and each with what explains it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from dualtrack.plugins.knowledge.chunks import LONGEST_INTRODUCTION, chunks_of
from dualtrack.plugins.knowledge.documents import Block, ReadDocument
from dualtrack.plugins.knowledge.reading.blocks import Blocks
from dualtrack.tools.courses.chunking import SIZE
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.knowledge.office_files import reading

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = st.text(st.sampled_from("ab. :日。|-\n\t`é"), max_size=400).map(lambda text: text * 7)
_PARTS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), _TEXT),
        st.tuples(st.just("code"), _TEXT),
        st.tuples(st.just("items"), st.lists(_TEXT.map(lambda text: "- " + text.replace("\n", " ")), max_size=9)),
        st.tuples(st.just("table"), st.lists(st.lists(_TEXT, min_size=2, max_size=3), max_size=9)),
        st.tuples(st.just("heading"), st.text("xyz ", max_size=30)),
    ),
    max_size=8,
)  # fmt: skip


def _document(*blocks: Block) -> ReadDocument:
    return ReadDocument("Title", "txt", blocks)


def _texts(*blocks: Block) -> list[str]:
    return [chunk.text for chunk in chunks_of(_document(*blocks))]


@given(_PARTS)
def test_nothing_is_lost_and_every_chunk_is_bounded(parts: list[tuple[str, object]]) -> None:
    blocks = Blocks()
    add: dict[str, Callable[..., None]] = {
        "text": blocks.text,
        "code": blocks.code,
        "items": blocks.items,
        "table": blocks.table,
        "heading": lambda title: blocks.heading(1, title),
    }
    for kind, value in parts:
        add[kind](value)
    found = blocks.finished()
    chunks = chunks_of(ReadDocument("T", "txt", found))
    assert all(chunk.text.strip() for chunk in chunks)
    assert all(len(chunk.text) <= SIZE + LONGEST_INTRODUCTION + 1 for chunk in chunks)
    letters = re.compile(r"[^ab日é]")
    for headings in {block.headings for block in found}:
        written = "".join(chunk.text for chunk in chunks if chunk.headings == headings)
        for block in (block for block in found if block.headings == headings):
            for letter in set(letters.sub("", block.text)):
                wanted = sum(other.text.count(letter) for other in found if other.headings == headings)
                assert written.count(letter) >= wanted


@pytest.mark.parametrize(
    "sentence",
    [
        "彼は「行く。」と言った。",
        "यह एक बहुत ही लंबा और सरल वाक्य है जो आगे बढ़ता है। ",
        "هل هذا سؤال؟ ",
        "这是一句话！",
    ],
)
def test_sentences_of_other_scripts_are_whole(sentence: str) -> None:
    texts = _texts(Block(sentence * 150, "text"))
    assert len(texts) > 1
    assert all(text[-1] in "。।؟！」" for text in texts)
    assert not any(text.startswith("」") for text in texts)


def test_each_piece_of_a_table_has_the_header() -> None:
    rows = "\n".join(f"Part {at} | {at}.50 € | in stock" for at in range(60))
    texts = _texts(Block(rows, "table", header="Part | Price | Stock"))
    assert len(texts) > 1
    assert all(text.startswith("Part | Price | Stock\nPart ") for text in texts)
    assert "\n".join(text.partition("\n")[2] for text in texts) == rows


def test_rows_that_are_too_wide_name_their_columns() -> None:
    (first, *others) = _texts(Block(f"Bolt | {'long text. ' * 90}", "table", header="Part | Note"))
    assert first.startswith("Part: Bolt\nNote: long text.")
    assert others


def test_a_short_listing_is_whole_and_a_long_one_keeps_its_language() -> None:
    short = "```py\nx = 1\n\n\ny = 2. \n```"
    assert _texts(Block(short, "code")) == [short]
    lines = [f"value_{at} = compute({at})" for at in range(90)]
    texts = _texts(Block("```py\n" + "\n".join(lines) + "\n```", "code"))
    assert len(texts) > 1
    assert all(text.startswith("```py\n") and text.endswith("\n```") for text in texts)
    assert "\n".join(text.removeprefix("```py\n").removesuffix("\n```") for text in texts) == "\n".join(lines)


def test_items_have_those_above_them_and_the_line_that_introduces_them() -> None:
    inner = "\n".join(f"  - inner item number {at} with some words" for at in range(40))
    texts = _texts(
        Block("You must:" + " ".rjust(1), "text"),
        Block(f"- Before the start\n{inner}", "list"),
    )
    assert texts[0].startswith("You must:")
    assert all("- Before the start\n  - inner" in text for text in texts)
    assert not any(text.endswith("- Before the start") for text in texts)


def test_short_neighbours_share_a_chunk_and_sections_do_not() -> None:
    one, two = ("One",), ("Two",)
    chunks = chunks_of(
        _document(Block("a", "text", one), Block("b | c", "table", one), Block("d", "text", two))
    )
    assert [(chunk.headings, chunk.text) for chunk in chunks] == [(one, "a\n\nb | c"), (two, "d")]


def test_a_sentence_goes_on_over_the_page() -> None:
    chunks = chunks_of(
        _document(Block("It begins here and", "text", (), 1), Block("ends there.", "text", (), 2))
    )
    assert [(chunk.text, chunk.page) for chunk in chunks] == [("It begins here and\nends there.", 1)]


def test_a_chunk_has_the_page_on_which_it_begins() -> None:
    sentence = "This is a sentence of the page. "
    chunks = chunks_of(_document(*(Block((sentence * 40).strip(), "text", (), page) for page in (1, 2, 3))))
    assert [chunk.page for chunk in chunks] == sorted(chunk.page or 0 for chunk in chunks)
    assert {chunk.page for chunk in chunks} == {1, 2, 3}


def test_the_sixty_rows_of_a_markdown_table_all_have_their_header() -> None:
    rows = "".join(f"| Model {at} | {at} kW | {at} bar |\n" for at in range(60))
    chunks = chunks_of(
        reading("a.md", f"# Pumps\n\n| Type | Power | Pressure |\n|---|---|---|\n{rows}".encode())
    )
    assert all("Type | Power | Pressure" in chunk.text for chunk in chunks)
    assert sum(chunk.text.count("Model") for chunk in chunks) == 60
