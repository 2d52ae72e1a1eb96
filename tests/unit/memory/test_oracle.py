"""Whatever was said is found again, whoever writes the summaries: `bench.oracle`, small and by words alone."""

from __future__ import annotations

import pytest

from bench.chat_cost import Prose
from bench.oracle.__main__ import asked
from bench.oracle.facts import IN_RESULTS, KINDS, conversation


@pytest.mark.parametrize(
    ("writer", "is_told"), [("extract", None), ("perfect", True), ("adversarial", False)]
)
def test_every_fact_is_reachable_in_two_calls(writer: str, is_told: bool | None) -> None:
    probes = asked(writer, conversation(10, Prose("oracle").of, most=6), track_tokens=2_400)
    assert {probe.fact.kind for probe in probes} == set(KINDS)
    assert [probe.fact for probe in probes if probe.calls is None] == []
    assert [probe.fact for probe in probes if not probe.is_hit] == []
    assert any(probe.fact.query <= probe.folded for probe in probes)
    told = [probe.in_sight for probe in probes if probe.fact.kind in IN_RESULTS]
    assert is_told is None or any(told) == is_told
