"""Reads what a chat's receipt is made of: its item, turns, calls and ledger lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.chat.receipt import Evidence
from dualtrack.errors import Gone, not_found
from dualtrack.models.receipt_data import waits_of

if TYPE_CHECKING:
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.ledger import Ledger
    from dualtrack.storage.stores import ToolStores


def evidence(stores: ToolStores, chat: Chat, ledger: Ledger | None) -> Evidence:
    """The evidence; 404 if the chat is being deleted. ``ledger``: None if its lines are not wanted."""
    try:
        loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    except Gone:
        loaded = None
    if loaded is None:
        raise not_found("There is no such chat.")
    chat, turns = loaded
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query, texts=())
    entries = ledger.lines(chat.payer, chat.spent.ledger) if ledger else ()
    if chat.status == "running":  # what is not recorded yet is in its events
        waited = waits_of(stores.log(chat).events(), chat.turn + 1)
        chat = replace(chat, spent=replace(chat.spent, waited=waited))
    return Evidence(chat, turns, records, entries, _tools_changed(stores, chat))


def _tools_changed(stores: ToolStores, chat: Chat) -> bool:
    """Whether the chat's client brought other tools than that of the query before."""
    if chat.query == 1:
        return False
    history = stores.history.across(chat.ancestry)
    chat_id = history.chat_of_query(chat.user, chat.conversation_id, chat.query - 1)
    before = stores.chats.load(chat.user, chat_id) if chat_id else None
    return before is not None and before.client_tools != chat.client_tools
