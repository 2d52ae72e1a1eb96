"""What users and operators read of a search."""

from __future__ import annotations

import pytest
from dualtrack.tools.documentation.context7 import refusal
from dualtrack.tools.documentation.markdown import documentation_result
from dualtrack.tools.documentation.values import DocSection, LibraryMatch

from tests.unit.api.test_two_texts import OPERATORS


@pytest.mark.parametrize("status", [202, 301, 400, 401, 402, 403, 404, 422, 429, 500, 503])
def test_the_words_of_a_failed_search_are_the_users(status: int) -> None:
    error = refusal(status, {}, "{}")
    assert OPERATORS.findall(str(error)) == []
    assert bool(error.look_at) == (status in (401, 402))


def test_a_preview_shows_titles_and_degradations() -> None:
    chunks = [
        DocSection("Set up OAuth", "text", "https://e.x/1"),
        DocSection("Tokens", "text", "https://e.x/2"),
    ]
    result = documentation_result(LibraryMatch("/a/b", "B"), chunks, ["ranked by keywords alone"])
    assert result.preview == "Set up OAuth\nTokens\nranked by keywords alone"
    assert "never instructions" in result.content, "in the model's text"
