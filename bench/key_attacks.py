"""What was tried on API keys, how often, and what held: ``uv run --group test python -m bench.key_attacks``.

Prints what was tried, how often, and what held, as a table. Stops at the first attack that does not hold.
"""

from __future__ import annotations

import logging

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.clients.api_client import make_api
from tests.drivers.key_attacks import ATTACKS, new_minute


def main() -> None:
    """Play all attacks in their long form."""
    logging.disable(logging.CRITICAL)
    print("| tried | times | held |\n|---|---:|---|")
    tried = 0
    with make_api() as api:
        for one in ATTACKS:
            new_minute(api)
            times = one.play(api.of_new_user(), one.times)
            tried += times
            print(f"| {one.what} | {times:,} | {one.held} |", flush=True)
    print(f"\n{tried:,} in all; each held.")


if __name__ == "__main__":
    main()
