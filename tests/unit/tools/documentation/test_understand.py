"""Parsing the request by rules, choosing the library, phrasing the questions."""

from __future__ import annotations

import pytest
from dualtrack.tools.documentation.choose import by_score, clear_winner
from dualtrack.tools.documentation.understand import phrasings, understand_by_rules
from dualtrack.tools.documentation.values import DocumentationRequest, LibraryMatch


@pytest.mark.parametrize(
    ("question", "library"),
    [
        ("How do I set up OAuth for Twitter ads?", "Twitter ads"),
        ("How do I define a model in Pydantic?", "Pydantic"),
        ("How can I use middleware with Express to log requests?", "Express"),
        ("Explain the `httpx` timeout settings", "httpx"),
        ("What are FastAPI dependencies?", "FastAPI"),
        ("Next.js 15 caching", "Next.js 15"),
        ("how do i cancel a request in the undici library?", "undici library"),
        ("caching", "caching"),
        ("???", "???"),
    ],
)
def test_the_product_is_read_from_the_question(question: str, library: str) -> None:
    request = understand_by_rules(question)

    assert request.library == library
    assert request.question == question
    assert request.topic


def test_phrasings_differ_and_are_within_context7s_limit() -> None:
    ways = phrasings(
        DocumentationRequest("How do I set up OAuth for Twitter ads?", "Twitter Ads API", "OAuth set-up")
    )

    assert ways[0] == "How do I set up OAuth for Twitter ads?"
    assert len(ways) == len(set(ways)) == 5
    assert all(
        1 <= len(way) <= 500 for way in phrasings(DocumentationRequest("x" * 500, "y" * 500, "z" * 500))
    )


def library(
    identity: str, title: str, trust: float = 5, benchmark: float = 50, state: str = "finalized"
) -> LibraryMatch:
    return LibraryMatch(identity, title, "", state, trust, benchmark, 10)


def test_a_library_of_the_wanted_name_wins_clearly_over_better_trusted_strangers() -> None:
    scored = by_score(
        [library("/x/react-admin", "React Admin", 9, 90), library("/fb/react", "React", 8, 80)], "react"
    )

    assert scored[0][0].id == "/fb/react"
    assert clear_winner(scored, lead=0.15)


def test_two_libraries_of_the_same_name_and_quality_have_no_clear_winner() -> None:
    scored = by_score([library("/a/react", "React"), library("/b/react", "React")], "React")

    assert [candidate.id for candidate, _ in scored] == ["/a/react", "/b/react"]
    assert not clear_winner(scored, lead=0.15)
    assert clear_winner(scored[:1], lead=0.15)


def test_a_broken_library_is_last_and_one_in_preparation_counts_half() -> None:
    scored = by_score(
        [
            library("/a/react", "React", state="error"),
            library("/b/react", "React", state="processing"),
            library("/c/vue", "Vue", 10, 100),
        ],
        "React",
    )

    assert scored[-1] == (library("/a/react", "React", state="error"), -1.0)
    assert scored[0][1] < 0.5
