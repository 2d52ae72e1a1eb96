"""The crash matrix, printed (docs/faults.md). Exit code 1 if a case did not recover.

    uv run --group test python -m bench.crash_matrix [SCENARIO]                     all cases, in memory: minutes
    uv run --group test python -m bench.crash_matrix [SCENARIO] --workers [CASES]   the handlers on the emulator

``SCENARIO`` selects the scenarios whose name contains it. A case of ``--workers`` takes a second or two and there are
thousands: without a number all of them run, with a number that many, drawn by ``DUALTRACK_CRASH_SEED``.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers import crash_matrix, worker_world
from tests.drivers.crash_world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.drivers.crash_matrix import Case
    from tests.drivers.crash_world import Scenario

_make: Callable[..., World] = World
_EVERY = 100


def main(scenarios: Sequence[Scenario], prepare: Callable[[], None], most: int | None) -> int:
    """Run the cases and print what did not recover."""
    started = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), initializer=prepare) as pool:
        listed = [case for cases_of_scenario in pool.map(_cases, scenarios) for case in cases_of_scenario]
        random.Random(os.environ.get("DUALTRACK_CRASH_SEED", "1")).shuffle(listed)
        chosen = listed[:most]
        outcomes = []
        for outcome in zip(chosen, pool.map(_run, chosen, chunksize=4), strict=True):
            outcomes.append(outcome)
            if len(outcomes) % _EVERY == 0:
                seconds = time.monotonic() - started
                print(f"{len(outcomes)} of {len(chosen)} cases after {seconds:.0f} seconds", file=sys.stderr)
    late = sum(not crash_matrix.occurred(*outcome) for outcome in outcomes)
    outcomes = [outcome for outcome in outcomes if crash_matrix.occurred(*outcome)]
    print(crash_matrix.table(outcomes))
    broken = [(case, wrong) for case, wrong in outcomes if wrong]
    for case, wrong in broken:
        print(f"\n{case}", *wrong, sep="\n    ")
    seconds = time.monotonic() - started
    print(
        f"\n{len(outcomes) - len(broken)} of {len(outcomes)} cases recovered, "
        f"of {len(listed)} in all, in {seconds:.0f} seconds; {late} could not be reproduced"
    )
    return 1 if broken else 0


def in_memory() -> None:
    """Each process runs the library's functions over an engine of its own."""


def on_the_emulator() -> None:
    """Each process runs the handlers on a deployed stack of its own, until it ends."""
    global _make  # noqa: PLW0603 - what the tasks of this process stand on
    logging.disable(logging.INFO)
    opened = ExitStack()
    folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
    stands_on = opened.enter_context(worker_world.ground(folder / "stack"))
    Finalize(None, opened.close, exitpriority=10)
    _make = partial(worker_world.WorkerWorld, ground=stands_on)


def _cases(scenario: Scenario) -> list[Case]:
    return list(crash_matrix.cases(scenario, _make))


def _run(case: Case) -> list[str]:
    try:
        return crash_matrix.run(case, _make)
    except Exception as error:  # noqa: BLE001 - one broken case must not hide the others
        return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", nargs="?", type=int, const=sys.maxsize, metavar="CASES")
    parser.add_argument("scenario", nargs="?", default="")
    asked = parser.parse_args()
    known: Sequence[Scenario] = worker_world.SCENARIOS if asked.workers else crash_matrix.SCENARIOS
    with crash_matrix.with_other_profiles():
        broken = main(
            [scenario for scenario in known if asked.scenario in scenario.name],
            on_the_emulator if asked.workers else in_memory,
            asked.workers,
        )
    sys.exit(broken)
