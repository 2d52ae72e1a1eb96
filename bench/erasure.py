"""An erasure with every fault at every call, and the AWS requests of deleting a long conversation (docs/faults.md).

uv run --group test python -m bench.erasure               all cases: minutes; exit code 1 if one did not recover
uv run --group test python -m bench.erasure --long 4300   requests of deleting so many queries of seven items
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.erasure_world import Long, all_cases, run
from tests.drivers.faults import Process, Trace


def matrix() -> int:
    """Run all cases and print what did not recover."""
    cases = all_cases()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(zip(cases, pool.map(run, cases, chunksize=8), strict=True))
    broken = [(fault, outcome.wrong) for fault, outcome in outcomes if outcome.wrong]
    for fault, wrong in broken:
        print(fault, *wrong, sep="\n    ")
    struck = sum(outcome.struck for _, outcome in outcomes)
    kinds = Counter(fault.kind for fault in cases)
    print(
        f"{len(cases) - len(broken)} of {len(cases)} cases recovered; {struck} faults struck; {dict(kinds)}"
    )
    return 1 if broken else 0


def long(queries: int) -> int:
    """Count the requests of an uninterrupted deletion."""
    conversation = Long(queries)
    items = conversation.left()
    trace = Trace(conversation.world.aws)
    conversation.delete(Process(trace, "request"))
    counted = Counter(site.operation for site in trace.sites)
    print(f"{items:,} items and objects of {queries:,} queries: {counted.total():,} requests {dict(counted)}")
    return 1 if conversation.left() else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", type=int, metavar="QUERIES")
    asked = parser.parse_args()
    sys.exit(long(asked.long) if asked.long else matrix())
