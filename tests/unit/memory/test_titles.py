"""The text by which conversations are found (CONTRACT 4)."""

from __future__ import annotations

import pytest
from dualtrack.memory.titles import start_of, title_of


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("How do I set up OAuth for Twitter ads?", "How do I set up OAuth for Twitter ads?"),
        ("Hi! How do I set up OAuth? I have a key.", "Hi! How do I set up OAuth?"),
        ("Remember the number 41. Thanks.", "Remember the number 41."),
        ("Use e.g. version 3.2 of it. Then stop.", "Use e.g. version 3.2 of it."),
        ("# Plan\n\n- **Launch** on `4 May`\n", "Plan Launch on 4 May"),
        ("Explain this code:\n```py\nprint(1)\n```\nand why.", "Explain this code"),
        ("```py\nprint('hello, world')\n```", "py print('hello, world')"),
        ("See [the docs of it](https://example.com/a_b) first. Then go.", "See the docs of it first."),
        ("__init__ is called twice, why?", "__init__ is called twice, why?"),
        ("-5 degrees are cold?", "-5 degrees are cold?"),
        ("これは何ですか。もう一つの質問です。そして三つ目の質問。", "これは何ですか。 もう一つの質問です。"),
        (f"{'word ' * 40}", f"{'word ' * 15}word…"),
        ("x" * 200, "x" * 79 + "…"),
        ("```", "```"),
        (" \n ", ""),
    ],
)
def test_a_title_is_the_first_sentence_without_markup(message: str, title: str) -> None:
    assert title_of(message) == title


def test_the_first_100_characters_of_a_query_are_searched() -> None:
    assert start_of("a" * 99 + "bc") == "a" * 99 + "b"
