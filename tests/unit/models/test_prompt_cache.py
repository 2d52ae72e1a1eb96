"""What a prompt costs by the moment of the call before (DESIGN 2.7)."""

from __future__ import annotations

import pytest
from dualtrack.models.prices import dollars
from dualtrack.models.prompt_cache import CachedPrefix, cached_prompt
from dualtrack.models.turn import Usage

BEFORE = CachedPrefix(1_000, at=500.0)


@pytest.mark.parametrize(
    ("at", "usage"),
    [
        (501.0, Usage(cache_read_tokens=1_000, cache_write_tokens=200)),
        (800.0, Usage(cache_read_tokens=1_000, cache_write_tokens=200)),
        (800.1, Usage(cache_write_tokens=1_200)),
    ],
)
def test_a_prefix_is_read_for_five_minutes_and_then_written_anew(at: float, usage: Usage) -> None:
    assert cached_prompt(BEFORE, 1_200, at) == usage


def test_the_first_call_writes_its_whole_prompt() -> None:
    assert cached_prompt(CachedPrefix(), 1_200, at=1.0) == Usage(cache_write_tokens=1_200)


def test_no_more_is_read_than_the_call_sends() -> None:
    assert cached_prompt(BEFORE, 400, at=501.0) == Usage(cache_read_tokens=400)


def test_a_warm_call_costs_what_the_price_table_says_of_its_parts() -> None:
    """At $1 a million: 1,000 tokens at a tenth and 200 at five quarters."""
    cost = dollars("claude-haiku-4-5", cached_prompt(BEFORE, 1_200, at=501.0))
    assert cost == pytest.approx((1_000 * 0.1 + 200 * 1.25) / 1e6)
