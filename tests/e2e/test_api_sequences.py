"""Random requests of several users and an administrator at once, on the stack that all tests share.

``DUALTRACK_SEQUENCE_SECONDS`` and ``DUALTRACK_SEQUENCE_SEED`` set its length and seed; the long form is ``uv run python
-m bench.api_sequences`` (docs/faults.md).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.drivers.api_sequences import Sequences
from tests.long_forms import LONG

if TYPE_CHECKING:
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

SECONDS = float(os.environ.get("DUALTRACK_SEQUENCE_SECONDS", "12" if LONG else "6"))
SEED = int(os.environ.get("DUALTRACK_SEQUENCE_SEED", "20261122"))


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_no_sequence_of_requests_breaks_a_rule(root: Root, model: OfflineModel, tools: ToolServer) -> None:
    sequences = Sequences(root, model, tools, SEED, SECONDS)
    wrong = sequences.run()
    print(sequences.report())
    assert not wrong, f"seed {SEED}\n" + "\n".join(wrong)
