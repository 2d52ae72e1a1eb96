"""Deliveries of webhooks to receivers of every kind, by
``uv run --group test python -m tests.plugins.webhooks.measure_deliveries``.

The product's own code over tables in memory and sockets of this machine: 5,000 messages to ten webhooks that answer,
and 5,000 to two hundred that time out, answer late, hang up, redirect, send 1 GB, or reset, each of an owner
of its own. These are mended after each message was tried; the waits between tries pass in time that is a value. Then
the messages a second of one webhook and of many, alone and beside slow ones. Exit code 1 if one was lost.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Final

from tests.plugins.webhooks.crowd import BAD, Crowd, crowd

BAD_ONES: Final = 200
SLOW: Final = 200
"""Slow webhooks beside those that answer."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", nargs="?", type=int, default=10_000)
    messages = parser.parse_args().messages
    with crowd() as run:
        kinds = run.hostile(messages // 20, BAD_ONES)
        print("| receiver | messages | lost | told again | bytes read of an answer, at most |")
        print("|---|---:|---:|---:|---:|")
        for kind, seen in kinds.items():
            print(f"| {kind} | {seen.messages} | {seen.lost} | {seen.again} | {seen.most_read:,} |")
        lost = sum(seen.lost for seen in kinds.values())
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"\nMemory of the process, tables and receivers included: {megabytes} MB at most.\n")
    print("| webhooks | messages each | slow ones beside them | messages a second | the last after |")
    print("|---:|---:|---:|---:|---:|")
    for hooks, each, slow in ((1, 500, 0), (50, 40, 0), (1, 500, SLOW), (50, 40, SLOW)):
        with crowd() as run:
            seconds = _seconds(run, hooks, each, slow)
        print(f"| {hooks} | {each} | {slow} | {hooks * each / seconds:,.0f} | {seconds:.1f} s |")
    return 1 if lost else 0


def _seconds(run: Crowd, hooks: int, each: int, slow: int) -> float:
    """Until every message of those that answer has arrived, which wait behind those of the slow ones."""
    for number in range(slow):
        run.tell(run.hook(BAD[number % 2], milliseconds=5_000), 20, spread=True)
    good = [run.hook("ok") for _ in range(hooks)]
    for hook in good:
        run.tell(hook, each)
    begun = time.monotonic()
    ended = run.until_arrived(hooks * each)
    return ended - begun


if __name__ == "__main__":
    sys.exit(main())
