"""When a chat has reached its cost cap (CONTRACT 8)."""

from __future__ import annotations

import pytest
from dualtrack.models.cost_cap import is_spent, lowest_cap, most_of_a_call
from hypothesis import given
from hypothesis import strategies as some

COST = some.floats(0, 0.2)


@pytest.mark.parametrize(
    ("cap", "spent", "last", "ends"),
    [
        (0.0, [9.0, 9.0], 1.0, False),  # no cap
        (0.5, [], 1.0, False),  # the first call of a chat is never forced to be its last
        (0.5, [0.1], 0.3, False),
        (0.5, [0.1], 0.31, True),
        (1.0, [0.1, 0.4, 0.1], 0.05, True),  # the next one may cost as much as the most expensive
    ],
)
def test_the_cap(cap: float, spent: list[float], last: float, ends: bool) -> None:
    assert is_spent(cap, spent, last) is ends


@given(cap=some.floats(0.5, 2), turns=some.lists(COST, min_size=1, max_size=60), last=COST)
def test_a_chat_stays_below_its_cap_unless_a_turn_costs_more_than_any_before(
    cap: float, turns: list[float], last: float
) -> None:
    """And exceeds it by no more than that difference."""
    spent = [turns[0]]
    dearer = 0.0
    for turn in turns[1:]:
        if is_spent(cap, spent, last):
            break
        dearer = max(dearer, turn - max(spent))
        spent.append(turn)
    assert sum(spent) + last <= max(cap, turns[0] + last) + dearer + 1e-9


def test_the_lower_cap_counts_and_without_caps_there_is_none() -> None:
    assert lowest_cap(0.0, 0.0) == 0.0
    assert lowest_cap(0.0, 2.0) == lowest_cap(2.0, 0.0) == lowest_cap(3.0, 2.0) == 2.0


def test_the_most_that_a_call_costs() -> None:
    assert most_of_a_call("claude-haiku-5-5", 95_000, 12_096) == pytest.approx(0.017923)
    assert most_of_a_call("claude-sonnet-5-5", 95_000, 12_096) == pytest.approx(0.35846)
    assert most_of_a_call("claude-opus-5-5", 95_000, 12_096) == pytest.approx(0.71692)
