"""Many simulated chats on one engine: ``python -m bench.credit_simulation --chats 100000``.

Prints what it ran. Stops at the first broken rule, with the seed that breaks it.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from bench.credit_engines import ENGINES
from tests.drivers.credit_simulation import CHATS_PER_WORLD, Tally, World, worlds

if TYPE_CHECKING:
    from collections.abc import Iterable


def play(engine: str, share: Iterable[tuple[str, int]]) -> Tally:
    """Play the worlds one after another, on a fresh engine."""
    tally = Tally()
    with ENGINES[engine]() as client:
        for seed, chats in share:
            tally.add(World(client, seed, chats).play())
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="memory")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    everything = list(worlds(options.chats, options.seed))
    size = max(1, 2_000 // CHATS_PER_WORLD)
    shares = [everything[start : start + size] for start in range(0, len(everything), size)]
    begun, total = time.monotonic(), Tally()
    with ProcessPoolExecutor(options.processes) as pool:
        for tally in pool.map(partial(play, options.engine), shares):
            total.add(tally)
            print(f"{total.chats} chats, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{total.chats} chats on {options.engine}, seed {options.seed}: no rule was broken")
    print(f"{total.steps} steps, {total.writes} writes")
    for name, count in sorted(total.counts.items()):
        print(f"{count:9d} {name}")


if __name__ == "__main__":
    main()
