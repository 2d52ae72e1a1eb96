"""Crashes, duplicates and zombies at every outside call of every step (docs/faults.md).

The whole matrix takes minutes (``uv run --group test python -m bench.crash_matrix``). This runs a sample: every
call that no scenario before makes, a quarter of the others, and every kind of fault in half of the scenarios; the short
form a sixteenth of the calls, and every kind in a quarter. ``DUALTRACK_CRASH_SEED`` selects another sample.
"""

from __future__ import annotations

import functools
import os
import random
import threading
from typing import TYPE_CHECKING

import pytest

from tests.drivers.crash_matrix import (
    BEGINNINGS,
    SCENARIOS,
    TWO_ROUNDS,
    Case,
    cases,
    judge,
    occurred,
    record,
    run,
    table,
    with_other_profiles,
)
from tests.drivers.crash_world import Scenario, World, ref_of
from tests.drivers.faults import PATIENCE, Fault, Process, Site
from tests.drivers.plugin_parts import parts
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.requests import ChatRef

SEED = int(os.environ.get("DUALTRACK_CRASH_SEED", "20261121"))
A_KIND, A_SITE = (2, 4) if LONG else (4, 16)
"""Each kind of fault in every such scenario; every such call."""


@pytest.fixture(autouse=True)
def _with_every_profile() -> Iterator[None]:
    with with_other_profiles():
        yield


@functools.cache
def new_sites() -> dict[str, frozenset[Site]]:
    """By scenario: its calls that no scenario before it makes."""
    known: set[Site] = set()
    new = {}
    for scenario in SCENARIOS:
        new[scenario.name] = frozenset(record(scenario).recorded.sites) - known
        known |= new[scenario.name]
    return new


def sample(scenario: Scenario) -> list[Case]:
    """A sample of the scenario's cases by seed."""
    drawn = random.Random(f"{SEED} {scenario.name}")
    listed = list(cases(scenario))
    drawn.shuffle(listed)
    of_sites = {case.fault.site: case for case in listed}
    of_kinds = {case.kind: case for case in listed}
    kinds = sorted(of_kinds)[SCENARIOS.index(scenario) % A_KIND :: A_KIND]
    new = new_sites()[scenario.name] if LONG else frozenset()
    sites = [site for number, site in enumerate(of_sites) if number % A_SITE == 0 or site in new]
    taken = [*(of_kinds[kind] for kind in kinds), *(of_sites[site] for site in sites)]
    return list({str(case): case for case in taken}.values())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_call_may_fail(scenario: Scenario) -> None:
    """After any single fault the chat ends once, with the right outcome, and the next query works."""
    ran = [(case, run(case)) for case in sample(scenario)]
    outcomes = [(case, wrong) for case, wrong in ran if occurred(case, wrong)]
    assert len(outcomes) > len(ran) / 2, "hardly a fault struck"
    print(table(outcomes))
    broken = "\n".join(f"{case}\n    " + "\n    ".join(wrong) for case, wrong in outcomes if wrong)
    assert not broken, f"seed {SEED}\n{broken}"


def test_every_step_is_in_the_matrix() -> None:
    """The scenarios reach every step, and every service that a step calls."""
    sites = {case.fault.site for scenario in SCENARIOS for case in cases(scenario)}
    added = parts("crash_scenarios")
    assert {site.step.split(" ")[0] for site in sites} == {
        *BEGINNINGS, "turn", "tool", "summarise", "cancel", "abort", "sweep", "decide",
        *(step for part in added for step in part.STEPS),
    }  # fmt: skip
    assert {site.service for site in sites if site.service} == {
        "dynamodb", "s3", "stepfunctions", "model", "tool", *(one for part in added for one in part.SERVICES)
    }  # fmt: skip


def test_the_checks_detect_an_unfinished_chat() -> None:
    """The checks fail for a chat that is left running, with its hold and its lease."""
    scenario = Scenario("left behind", never_started=True)
    world = World(scenario)
    world.post()
    case = Case(scenario, Fault(Site("", "", "", ""), "nothing"))
    world.ask_again = lambda: world.chats()[0]  # type: ignore[method-assign]
    wrong = "\n".join(judge(world, case))
    for part in (
        "still running",
        "terminal events []",
        "not free",
        "index of open chats",
        "held: {",
        "no response",
    ):
        assert part in wrong


def test_two_concurrent_runs_of_a_turn_need_two_model_calls() -> None:
    """The older run lets the newer one finish; otherwise they would overtake each other and need twelve."""
    world = World(
        Scenario("rivals", rounds=TWO_ROUNDS), Fault(Site("turn 1", "model", "messages", "turn 1"), "held")
    )
    world.post()
    ref = ref_of(world.chats()[0])
    older_waits, newer_is_done = threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        older_waits.set()
        assert newer_is_done.wait(PATIENCE)

    world.clock.sleep = sleep  # type: ignore[method-assign]
    older, first = _in_thread(world, ref)
    assert first.held.wait(PATIENCE)
    world.recorded.struck = False
    newer, second = _in_thread(world, ref)
    assert second.held.wait(PATIENCE)
    first.released.set()
    while older.is_alive() and not older_waits.wait(0.01):
        pass
    second.released.set()
    newer.join(PATIENCE)
    newer_is_done.set()
    older.join(PATIENCE)
    assert [call.turn for call in world.model_calls] == [1, 1]
    assert world.chats()[0].turn == 1


def _in_thread(world: World, ref: ChatRef) -> tuple[threading.Thread, Process]:
    process = Process(world.trace, "turn 1")
    thread = threading.Thread(target=world.turn, args=(ref, process), daemon=True)
    thread.start()
    return thread, process
