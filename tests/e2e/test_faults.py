"""The deployed stack in a storm: killed workers, stopped executions, a broken model service, a restart.

``DUALTRACK_STORM_CHATS`` and ``DUALTRACK_STORM_SEED`` set its length and seed; thousands of chats run by ``uv run
python -m bench.whole_stack_faults`` (docs/faults.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.drivers.storm import storm
from tests.long_forms import LONG

if TYPE_CHECKING:
    from pathlib import Path

CHATS = int(os.environ.get("DUALTRACK_STORM_CHATS", "40" if LONG else "10"))
SEED = int(os.environ.get("DUALTRACK_STORM_SEED", "20261121"))


# The restart drops the stack's clients and connections of the stopped emulator.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.timeout(300 + 6 * CHATS)
def test_in_a_storm_every_chat_ends_once_and_the_ledger_is_right(tmp_path: Path) -> None:
    """The invariants of the crash matrix, on the template that is deployed to AWS."""
    with storm(tmp_path / "stack", seed=SEED, chats=CHATS) as running:
        wrong = running.run()
        print(running.report())
    assert not wrong, f"seed {SEED}\n" + "\n".join(wrong)
