"""A busy model and the deployed workflow, in a short form; the long one is bench.busy_stack (docs/faults.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.stack_client import wait_for
from tests.drivers.busy_stack import busy, crowd
from tests.long_forms import LONG

if TYPE_CHECKING:
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.stack_client import Root

CHATS = 12 if LONG else 3


def test_no_chat_with_time_left_fails(root: Root, model: OfflineModel) -> None:
    """The outage lasts until each chat has been refused twice, on average."""
    now = crowd(root)
    with busy(model):
        now.ask(CHATS, arriving=0.0)
        wait_for(lambda: now.calls(model) >= 2 * CHATS)
    now.wait()
    counted = now.counted(model)
    assert counted.wrong == ()
    assert counted.ended == {"done": CHATS}
    assert counted.charged == 7 * CHATS
    assert counted.waits >= 2 * CHATS
    assert counted.states == 7 * CHATS + 3 * counted.waits
    assert counted.calls == 2 * CHATS + counted.waits
