"""The whole crash matrix, printed: ``uv run python -m tests.bench.crash_matrix [scenario]`` (docs/faults.md).

Exit code 1 if a case did not recover. An argument takes only the scenarios whose name holds it.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.fakes.crash_matrix import SCENARIOS, Case, cases, run, table


def main(wanted: str) -> int:
    """Run, print, and tell what did not recover."""
    started = time.monotonic()
    listed = [case for scenario in SCENARIOS if wanted in scenario.name for case in cases(scenario)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(zip(listed, pool.map(_run, listed, chunksize=20), strict=True))
    print(table(outcomes))
    broken = [(case, wrong) for case, wrong in outcomes if wrong]
    for case, wrong in broken:
        print(f"\n{case}", *wrong, sep="\n    ")
    seconds = time.monotonic() - started
    print(f"\n{len(outcomes) - len(broken)} of {len(outcomes)} cases recovered, in {seconds:.0f} seconds")
    return 1 if broken else 0


def _run(case: Case) -> list[str]:
    try:
        return run(case)
    except Exception as error:  # noqa: BLE001 - one broken case must not hide the others
        return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
