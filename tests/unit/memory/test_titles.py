"""The text by which conversations are found (CONTRACT 4)."""

from __future__ import annotations

import pytest
from dualtrack.memory.titles import TITLE_PROMPT_TOKENS, start_of, title_by_model, title_call, title_of
from dualtrack.models.thinking import Thinking
from dualtrack.text import cautious_tokens


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


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("OAuth for X ads", "OAuth for X ads"),
        ('"OAuth for **X** ads."', "OAuth for X ads"),
        ("# OAuth\n\n- for `X` ads\n", "OAuth for X ads"),
        ("[OAuth](https://evil.test) for X\tads", "OAuth for X ads"),
        ("„Anmeldung bei X“", "Anmeldung bei X"),
        ("「ログインの方法」", "ログインの方法"),
        ("OAuth\u202e for\x00 X\x1b[31m ads\ud800\ue000\u200b", "OAuth for X [31m ads"),
        ("👩\u200d💻 at work", "👩\u200d💻 at work"),
        ("What is it?", "What is it?"),
        ("x" * 60, "x" * 60),
        ("x" * 61, ""),
        ("word " * 100_000, ""),
        ("", ""),
        ("**…**", ""),
    ],
)
def test_a_title_by_the_model_is_one_clean_line_or_none(said: str, title: str) -> None:
    assert title_by_model(said) == title


def test_the_call_for_a_title_has_a_bound() -> None:
    call = title_call("問" * 100_000, "答" * 100_000, "claude-haiku-5-5", Thinking())
    (block,) = call["messages"][0]["content"]
    assert block["text"].count("問") == block["text"].count("答") == 2_000
    assert cautious_tokens(call["system"] + block["text"]) <= TITLE_PROMPT_TOKENS
    assert call["max_tokens"] == 32
