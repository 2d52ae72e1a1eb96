"""Crashes at outside calls of the real handlers, in processes that are killed (docs/faults.md).

A sample of what ``uv run --group test python -m bench.crash_matrix --workers`` runs; ``DUALTRACK_CRASH_SEED``
selects another sample, ``DUALTRACK_WORKER_CASES`` sets the number of cases per scenario.
"""

from __future__ import annotations

import os
import random
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.drivers.crash_matrix import NEVER_STRUCK, Case, cases, occurred, run, table
from tests.drivers.faults import Fault, Site
from tests.drivers.worker_world import SCENARIOS, Ground, WorkerScenario, WorkerWorld, ground
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.drivers.crash_world import World

SEED = int(os.environ.get("DUALTRACK_CRASH_SEED", "20261122"))
A_SCENARIO = int(os.environ.get("DUALTRACK_WORKER_CASES", "4" if LONG else "1"))

pytestmark = pytest.mark.timeout(300 + 60 * A_SCENARIO)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., World]]:
    """Makes worlds on one deployed stack."""
    stands_on: Ground
    with ground(tmp_path_factory.mktemp("workers")) as stands_on:
        yield partial(WorkerWorld, ground=stands_on)


@pytest.fixture(scope="module")
def listed(make: Callable[..., World]) -> dict[str, list[Case]]:
    """Every case by scenario, recorded from runs without a fault."""
    return {scenario.name: list(cases(scenario, make)) for scenario in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_worker_may_be_killed_at_any_call(
    scenario: WorkerScenario, make: Callable[..., World], listed: dict[str, list[Case]]
) -> None:
    """After any single fault the chat ends once, with the right outcome, and the next query works."""
    ran = [(case, run(case, make)) for case in _sample(listed[scenario.name])]
    outcomes = [(case, wrong) for case, wrong in ran if occurred(case, wrong)]
    print(table(outcomes))
    assert len(outcomes) > len(ran) / 2, "hardly a fault struck"
    broken = "\n".join(f"{case}\n    " + "\n    ".join(wrong) for case, wrong in outcomes if wrong)
    assert not broken, f"seed {SEED}\n{broken}"


def test_every_function_and_every_service_is_in_the_matrix(listed: dict[str, list[Case]]) -> None:
    """The scenarios reach every function with effects, and every service that one calls."""
    sites = {case.fault.site for of_scenario in listed.values() for case in of_scenario}
    assert {site.step.split(" ")[0] for site in sites} == {
        "connect", "refresh", "start", "turn", "tool", "summarise", "cancel", "abort", "sweep", "reset"
    }  # fmt: skip
    assert {site.service for site in sites if site.service} == {
        "dynamodb", "s3", "stepfunctions", "ssm", "kms", "model", "context7", "voyage", "mcp"
    }  # fmt: skip


def test_a_fault_that_never_strikes_is_a_failure(make: Callable[..., World]) -> None:
    """A call that no run makes is reported instead of counted as recovered."""
    gone = Case(SCENARIOS[0], Fault(Site("start", "s3", "no_such_call", ""), "crash before"))
    assert run(gone, make) == [NEVER_STRUCK]


def _sample(all_cases: list[Case]) -> list[Case]:
    """A sample by kind of fault: a random case of each, then a second of each, and so on."""
    drawn = list(all_cases)
    random.Random(SEED).shuffle(drawn)
    seen: dict[str, int] = {}
    ranked: list[tuple[int, int, Case]] = []
    for index, case in enumerate(drawn):
        seen[case.kind] = seen.get(case.kind, 0) + 1
        ranked.append((seen[case.kind], index, case))
    return [case for _, _, case in sorted(ranked, key=lambda rank: rank[:2])][:A_SCENARIO]
