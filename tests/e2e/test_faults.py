"""The deployed stack in a storm: killed workers, stopped executions, a broken model service, a restart.

``DUALTRACK_STORM_CHATS`` and ``DUALTRACK_STORM_SEED`` make it longer and another one; thousands of chats run by
``uv run python -m tests.bench.whole_stack_faults`` (docs/faults.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.drivers.storm import storm
from tests.long_forms import LONG

if TYPE_CHECKING:
    from pathlib import Path

CHATS = int(os.environ.get("DUALTRACK_STORM_CHATS", "200" if LONG else "16"))
SEED = int(os.environ.get("DUALTRACK_STORM_SEED", "20261121"))


# The restart drops the stack's clients of the emulator that is gone, connections and all.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.timeout(300 + 6 * CHATS)
def test_whatever_breaks_every_chat_ends_once_and_the_books_are_right(tmp_path: Path) -> None:
    """The invariants of the crash matrix, over the template that goes to AWS."""
    with storm(tmp_path / "stack", seed=SEED, chats=CHATS) as made:
        wrong = made.run()
        print(made.report())
    assert not wrong, f"seed {SEED}\n" + "\n".join(wrong)
