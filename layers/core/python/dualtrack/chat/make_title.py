"""The title of a new conversation, written by the model after the answer to its first query (CONTRACT 4).

Best effort, after the chat is done, so it delays no answer: if the call fails, the step dies, or what came is no title,
the title stays the beginning of that query. A title that the user gives stays, whatever the order.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.move_credits import charge_aside
from dualtrack.clock import iso
from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.ids import query_id, response_id
from dualtrack.memory.left_out import is_declined
from dualtrack.memory.titles import title_by_model, title_call
from dualtrack.models.prices import rates_of
from dualtrack.models.receipt_data import SideCalls
from dualtrack.storage.conversations import title_after
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.past_writes import write_title

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualtrack.memory.records import Record
    from dualtrack.memory.summaries import SummarySettings
    from dualtrack.models.protocol import Model
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import PaidStores

_CALL_SECONDS: Final = 10.0


def make_title(
    stores: PaidStores,
    chat: Chat,
    records: Sequence[Record],
    open_model: Callable[[], Model],
    settings: SummarySettings,
    made: Callable[[SideCalls], None],
) -> None:
    """Give the conversation its title, if this chat's query is the one after whose answer that is due. ``records``: of
    the query; ``made`` is called with what it took, once that is recorded."""
    history = stores.history
    is_held = chat.costs is None or chat.costs.title > 0
    if not (
        settings.titles
        and is_held
        and not is_declined(records)
        and title_after(history.client, history.table, chat.user, chat.conversation_id) == chat.query
    ):
        return
    said = {record.record_id: record.content for record in records}
    query, answer = said.get(query_id(chat.query), ""), said.get(response_id(chat.query), "")
    request = title_call(query, answer, settings.model, settings.thinking)
    at, clock = iso(stores.clock()), time.monotonic()
    try:
        text, usage = open_model().complete(request, _CALL_SECONDS)
    except (ModelRefused, ModelUnavailable):
        return
    title = title_by_model(text) if usage.output_tokens < request["max_tokens"] else ""
    seconds, rates = round(time.monotonic() - clock, 3), rates_of(settings.model, usage.prompt_tokens, at)
    call = SideCalls(at, settings.model, seconds, 1, 1, usage, rates=rates)
    with contextlib.suppress(ConditionFailed):  # the conversation is being deleted
        charge_aside(stores, chat, call, partial(write_title, stores, chat, title, call))
        made(call)
