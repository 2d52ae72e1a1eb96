"""Chats through a storm on the deployed stack: ``uv run --group test python -m bench.whole_stack_faults [CHATS]
[SEED]``.

5,000 chats by default; prints progress. After Ctrl-C no further chat begins, and those begun are checked. Exit code 1
if anything is wrong (docs/faults.md).
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.storm import storm


def main(chats: int, seed: int) -> int:
    """Run the storm and print the report."""
    logging.disable(logging.WARNING)  # warnings about lost peers are expected
    with (
        tempfile.TemporaryDirectory() as folder,
        storm(Path(folder) / "stack", seed=seed, chats=chats) as running,
    ):
        started = time.monotonic()
        running.progress = partial(_tell, chats, started)
        signal.signal(signal.SIGINT, lambda *_: running.enough.set())
        wrong = running.run()
        seconds = time.monotonic() - started
        print(running.report())
        ran = running.asked
    print(*wrong, sep="\n")
    print(
        f"{ran} chats, seed {seed}, in {seconds:.0f} seconds: {'nothing' if not wrong else len(wrong)} wrong"
    )
    return 1 if wrong else 0


def _tell(chats: int, started: float, ended: int) -> None:
    if ended % 50 == 0:
        print(f"{ended} of {chats} chats after {time.monotonic() - started:.0f} seconds", file=sys.stderr)


if __name__ == "__main__":
    asked = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(asked[0] if asked else 5_000, asked[1] if len(asked) > 1 else 1))
