"""The price table (DESIGN 2.15)."""

from __future__ import annotations

import pytest
from dualtrack.models.prices import DEFAULT, PRICES, dollars, is_known, price_of
from dualtrack.models.turn import Usage


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("claude-haiku-5-5", "claude-haiku-5-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4"),
        ("claude-opus-4-1", "claude-opus-4"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
    ],
)
def test_a_model_is_found_by_the_beginning_of_its_name(model: str, line: str) -> None:
    assert price_of(model) == PRICES[line]
    assert is_known(model)


@pytest.mark.parametrize("model", ["claude-nobody-9", "", "my-own-model"])
def test_an_unknown_model_has_the_default(model: str) -> None:
    assert price_of(model) == DEFAULT
    assert not is_known(model)


def test_cache_writes_cost_more_and_cache_reads_less() -> None:
    """A million tokens of each at $1 in and $5 out."""
    assert dollars("claude-haiku-4-5", Usage(1_000_000)) == pytest.approx(1)
    assert dollars("claude-haiku-4-5", Usage(0, 1_000_000)) == pytest.approx(5)
    assert dollars("claude-haiku-4-5", Usage(cache_write_tokens=1_000_000)) == pytest.approx(1.25)
    assert dollars("claude-haiku-4-5", Usage(cache_read_tokens=1_000_000)) == pytest.approx(0.1)


def test_a_long_prompt_costs_more_as_a_whole() -> None:
    """Cached tokens count toward its length; the answer does not, but costs the higher rate too."""
    assert dollars("claude-haiku-5-5", Usage(100_000, 10_000)) == pytest.approx(0.015)
    assert dollars("claude-haiku-5-5", Usage(100_000, 10_000, cache_read_tokens=1)) == pytest.approx(0.075)
