"""What no tool may bring back: the model's service would decline the request that has it (CONTRACT 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from dualtrack.storage.stores import ToolStores
    from dualtrack.tools.running import Running


def withheld(stores: ToolStores, running: Running, among: Collection[int]) -> frozenset[int]:
    """Those of these earlier queries of which the running one is sent nothing that they brought."""
    chat = running.chat
    history = stores.across(chat.ancestry).history
    of_this = {chat.pin.left_out} if chat.pin else set()
    return history.withheld(running.user, running.conversation_id, among, chat.query) | (of_this & {*among})
