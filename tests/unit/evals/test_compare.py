"""Decisions without a chat: intervals, the sign test and kappa beside values from tables, a schema."""

from __future__ import annotations

import pytest
from dualtrack_stack.evals.case import Checks
from dualtrack_stack.evals.checks import Outcome, findings
from dualtrack_stack.evals.compare import sign_test, wilson
from dualtrack_stack.evals.judge import kappa


@pytest.mark.parametrize(
    ("passed", "cases", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (8, 10, 0.4902, 0.9433),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_the_interval_is_wilson_s(passed: int, cases: int, low: float, high: float) -> None:
    assert wilson(passed, cases) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(0, 0, 1.0), (1, 1, 1.0), (5, 0, 0.0625), (0, 6, 0.03125), (8, 1, 0.0390625)]
)
def test_the_sign_test_is_exact(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == pytest.approx(p)


def test_an_answer_that_does_not_fit_the_schema_fails() -> None:
    checks = Checks.model_validate({"schema": {"type": "object", "required": ["city"], "properties": {}}})
    assert [one.passed for one in findings(checks, Outcome('{"city": 1}', "done"))] == [True]
    assert [one.passed for one in findings(checks, Outcome('{"town": 1}', "done"))] == [False]
    assert [one.passed for one in findings(checks, Outcome("Ottawa", "done"))] == [False]


def test_kappa_is_0_for_guesses_and_1_for_agreement() -> None:
    same = [(True, True), (False, False)]
    assert kappa(same) == 1
    assert kappa([*same, (True, False), (False, True)]) == 0
    assert kappa([(True, True)] * 3) is None
    assert kappa([]) is None
