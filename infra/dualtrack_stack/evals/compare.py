"""Sums of a run and the difference of two. Pure.

A pass rate of few cases says little, so each has Wilson's 95 % interval. Two runs of the same cases are paired: what
speaks for a difference are the cases that differ, by the exact sign test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack_stack.evals.judge import Agreement
    from dualtrack_stack.evals.run import CaseResult

_Z: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Run:
    """The results of one side; ``name`` as it is shown. ``agreement``: the judge's with labelled answers, None if
    there are none or no model judged."""

    name: str
    results: Sequence[CaseResult]
    agreement: Agreement | None = None


@dataclass(frozen=True, slots=True)
class Sums:
    """Of a run. ``low`` and ``high``: the interval of the pass ``rate``; ``dollars`` with the judge's."""

    passed: int
    cases: int
    rate: float
    low: float
    high: float
    credits: int
    dollars: float
    tokens: int
    seconds: float


def sums_of(results: Sequence[CaseResult]) -> Sums:
    """Those of results."""
    passed = sum(result.passed for result in results)
    low, high = wilson(passed, len(results))
    return Sums(
        passed,
        len(results),
        passed / len(results) if results else 0.0,
        low,
        high,
        sum(result.outcome.credits for result in results),
        math.fsum(result.outcome.dollars + result.judge_dollars for result in results),
        sum(result.outcome.tokens for result in results),
        math.fsum(result.outcome.seconds for result in results),
    )


def wilson(passed: int, cases: int) -> tuple[float, float]:
    """The interval in which the true rate lies with 95 %; all of it without cases."""
    if not cases:
        return 0.0, 1.0
    rate, squared = passed / cases, _Z**2
    middle = (rate + squared / (2 * cases)) / (1 + squared / cases)
    half = _Z * math.sqrt(rate * (1 - rate) / cases + squared / (4 * cases**2)) / (1 + squared / cases)
    return max(0.0, middle - half), min(1.0, middle + half)


def sign_test(better: int, worse: int) -> float:
    """How likely cases differ at least as one-sidedly as these if neither run is better; two-sided."""
    many = better + worse
    tail = sum(math.comb(many, count) for count in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / 2**many)


@dataclass(frozen=True, slots=True)
class Pair:
    """A case in both runs."""

    now: CaseResult
    other: CaseResult

    @property
    def differs(self) -> bool:
        """In what passes, or in what was answered or called."""
        return (
            self.now.passed != self.other.passed
            or self.now.outcome.text != self.other.outcome.text
            or [(call.tool, dict(call.input)) for call in self.now.outcome.calls]
            != [(call.tool, dict(call.input)) for call in self.other.outcome.calls]
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """``now`` beside ``other``: the ``pairs`` of cases that both have, how many of them only one passes, and the sign
    test's ``p``."""

    now: Run
    other: Run
    pairs: Sequence[Pair]
    only_now: int
    only_other: int
    p: float


def compared(now: Run, other: Run) -> Comparison:
    """Two runs of the same cases."""
    there = {result.id: result for result in other.results}
    pairs = tuple(Pair(result, there[result.id]) for result in now.results if result.id in there)
    only_now = sum(pair.now.passed and not pair.other.passed for pair in pairs)
    only_other = sum(pair.other.passed and not pair.now.passed for pair in pairs)
    return Comparison(now, other, pairs, only_now, only_other, sign_test(only_now, only_other))
