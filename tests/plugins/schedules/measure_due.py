"""Schedules that are due in the same minute: ``uv run --group test python -m tests.plugins.schedules.measure_due``.

The product's own code over tables in memory: 10,000 schedules of 1,000 users. Each run of the function gets its 45
seconds, or ends as all it has listed is started. Requests of the tables are counted: on AWS they are what takes time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

from dualtrack.api.identity import ApiCaller
from dualtrack.plugins.schedules.bodies import ScheduleBody
from dualtrack.plugins.schedules.manage import make_schedule
from dualtrack.plugins.schedules.run import Starting, run_schedules
from dualtrack.runtime.time_limit import time_for
from dualtrack.storage.stores import build_stores

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.memory_aws import Client, MemoryAws
from tests.drivers.world import SETTINGS, FakeClock, NoExecutions

RUN_SECONDS = 45
EACH = 10
"""Schedules of a user; a user's 50 credits are for as many chats."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schedules", nargs="?", type=int, default=10_000)
    schedules = parser.parse_args().schedules
    aws, clock, asked = MemoryAws(), FakeClock(), Counter[str]()

    def sent(service: str) -> Any:
        def send(operation: str, request: dict[str, Any]) -> Any:
            asked[service] += 1
            return aws.call(service, operation, request)

        return send

    stores = build_stores(SETTINGS, *(Client(sent(service)) for service in ("dynamodb", "s3")), clock)  # type: ignore[arg-type]
    body = ScheduleBody(message="Anything new?", rate="1 hour")
    for number in range(schedules):
        user = f"user{number // EACH}"
        make_schedule(stores, ApiCaller(user, user), body)
    clock.now += 3_600
    asked.clear()
    executions: Any = NoExecutions()
    done = tried = 0
    print("| run | started | refused | left for the next | seconds here | requests of the tables a chat |")
    print("|---:|---:|---:|---:|---:|---:|")
    for number in range(1, 1_000):
        begun = time.monotonic()
        report = run_schedules(stores, Starting(executions), time_for(RUN_SECONDS))
        seconds, each = time.monotonic() - begun, sum(asked.values()) / (report.started or 1)
        done, tried = done + report.started, tried + report.started + report.refused
        left = schedules - tried
        print(f"| {number} | {report.started} | {report.refused} | {left} | {seconds:.1f} | {each:.1f} |")
        asked.clear()
        clock.now += 60
        if report.complete:
            break
    twice = len(executions.started) - len(set(executions.started))
    print(f"\n{done} chats of {schedules} schedules, {twice} twice.")
    return int(done != schedules or twice > 0)


if __name__ == "__main__":
    sys.exit(main())
