"""What is approved is what is shown: one rule for the terminal, the page and other clients."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

import pytest
from dualtrack.visible import SIGN, as_json, on_a_line, parts, visible
from dualtrack_stack.cli.cjk import LETTERS, PUNCTUATION

from tests.drivers.page_modules import in_the_page

SEEN: Final = "\t\n\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Tab and line feed, and format characters with a glyph: signs before Arabic, Syriac and Kaithi numbers."""

TEXTS: Final = (
    "plain", "safe\u202egnp.exe", "a\u200bb\u2066c\ufe0f", "💡" * 1_999, "💡" * 2_001, "x" * 2_001, "\n" * 19, "\n" * 20,
    "begin" + " " * 5_000 + "end", "a\n" * 40 + "rm -rf", "\r\n" * 30, "e\u0301\U000e0041\U000e007f", "",
)  # fmt: skip


def of_all_characters(ranges: str) -> str:
    """The numbers of all characters within these ranges of a module's."""
    test = f"new RegExp(`[${{{ranges}}}]`, 'u')"
    return f"[...Array(0x110000).keys()].filter((code) => {test}.test(String.fromCodePoint(code)))"


def test_the_page_and_the_terminal_hide_nothing_alike() -> None:
    ours = [code for code in range(0x110000) if SIGN.match(chr(code))]
    assert in_the_page("js/visible.js", of_all_characters("it.HIDDEN")) == ours
    texts = f"{json.dumps(TEXTS)}.map"
    assert in_the_page("js/visible.js", f"{texts}(it.visible)") == [*map(visible, TEXTS)]
    assert in_the_page("js/reading.js", f"{texts}(it.parts)") == [list(parts(text)) for text in TEXTS]


def test_every_character_without_a_glyph_is_shown_by_its_number() -> None:
    """Those of Unicode's categories, and those which a browser calls ignorable."""
    hidden = {
        sign
        for code in range(0x110000)
        if unicodedata.category(sign := chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    ignorable = {chr(code) for code in in_the_page("js/visible.js", of_all_characters("'\\\\p{DI}'"))}
    assert [hex(ord(sign)) for sign in sorted(hidden | ignorable) if not SIGN.match(sign)] == [
        hex(ord(sign)) for sign in SEEN
    ]


def test_a_number_says_which_character_it_is() -> None:
    assert visible("a\u202eb\x1b[2J\U000e0041\ud800") == "a\\u202eb\\u001b[2J\\U000e0041\\ud800"
    assert visible("раypal e\u0301 שלום") == "раypal e\u0301 שלום", "what looks alike is seen"


@pytest.mark.parametrize("text", TEXTS)
def test_json_in_which_everything_is_seen_is_the_same_json(text: str) -> None:
    written = as_json({text: [text]}, indent=2)
    assert json.loads(written) == {text: [text]}
    assert not SIGN.search(written)
    assert in_the_page(
        "js/visible.js", f"it.writtenOut({json.dumps(json.dumps({text: [text]}, ensure_ascii=False))})"
    ) == (as_json({text: [text]}))


@pytest.mark.parametrize("text", TEXTS)
def test_a_long_text_has_its_beginning_and_its_end(text: str) -> None:
    begin, left, end = parts(text)
    assert text.startswith(begin)
    assert text.endswith(end)
    assert len(begin) + left + len(end) == len(text)
    line = on_a_line(text, 80)
    assert len(line) <= 80
    assert line[:3] == " ".join(visible(text).split())[:3]
    assert line[-3:] == " ".join(visible(text).split())[-3:]


def test_cjk_is_the_same_for_page_and_terminal() -> None:
    for name, ranges in (("PUNCTUATION", PUNCTUATION), ("LETTERS", LETTERS)):
        ours = [code for code in range(0x110000) if re.match(f"[{ranges}]", chr(code))]
        assert in_the_page("js/cjk.js", of_all_characters(f"it.{name}")) == ours
