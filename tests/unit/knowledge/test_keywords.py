"""Ranking by words: what counts as one, and what a section scores."""

from __future__ import annotations

import pytest
from dualtrack.knowledge.keywords import keyword_scores
from dualtrack.knowledge.words import Terms, words

TEXTS = [
    "Configure the session cookie",
    "setAccessToken(token) stores the OAuth access token",
    "Sessions and sessions: everything about a session",
    "Deploying behind a proxy",
]


def scores(question: str, texts: list[str] = TEXTS, k1: float = 1.5, b: float = 0.75) -> tuple[float, ...]:
    return keyword_scores(question, texts, k1=k1, b=b)


def test_identifiers_are_split_and_endings_cut() -> None:
    assert words("How do I use setAccessToken?") == ["setaccesstoken", "set", "access", "token"]
    assert words("my_sessions") == ["my_sessions", "session"]
    assert words("address status basis OAuth2") == ["address", "status", "basis", "oauth2", "o", "auth", "2"]


def test_a_repeated_word_gives_the_same_terms() -> None:
    met = Terms()

    assert words("setAccessToken the sessions", met) == words("setAccessToken the sessions")
    assert words("sessions setAccessToken", met) == words("sessions setAccessToken")
    assert met["the"] == ()


def test_a_section_without_any_of_the_words_scores_nothing() -> None:
    assert scores("kubernetes") == (0.0, 0.0, 0.0, 0.0)
    assert [score > 0 for score in scores("session cookie")] == [True, False, True, False]
    assert scores("the and of") == (0.0, 0.0, 0.0, 0.0)
    assert scores("x", []) == ()
    assert scores("x", ["", "?"]) == (0.0, 0.0)


def test_a_word_that_most_sections_share_still_counts_for_them() -> None:
    scored = scores("session", ["session a", "session b", "session c", "other"])

    assert min(scored[:3]) > scored[3] == 0


def test_k1_and_b_are_obeyed() -> None:
    repeated, once = "session session session session", "session alone"
    saturated = scores("session", [repeated, once, "x"], k1=1e-9)
    assert saturated[0] == pytest.approx(saturated[1])
    long = "session " + "filler " * 50
    unnormalised = scores("session", [long, once, "x"], b=0.0)
    assert unnormalised[0] == pytest.approx(unnormalised[1])
    assert scores("session", [long, once, "x"], b=1.0)[0] < scores("session", [long, once, "x"], b=1.0)[1]
