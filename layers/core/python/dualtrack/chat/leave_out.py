"""A query that the model's service declines although it is harmless: what came before it holds the words (CONTRACT 6).

If the query before was declined too, this one is asked once more without what the newest query before them had brought.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.chat.turn_attempt import no_other_run
from dualtrack.errors import Superseded
from dualtrack.events import left_out
from dualtrack.ids import query_id, response_id
from dualtrack.memory.left_out import is_declined, newest_with_results
from dualtrack.models.receipt_data import begun_before
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from dualtrack.chat.query_state import QueryState
    from dualtrack.chat.turn_attempt import TurnAttempt
    from dualtrack.models.turn import ModelReply


def without_newest(run: TurnAttempt, state: QueryState, reply: ModelReply) -> TurnAttempt | None:
    """The attempt without the newest results, which is told; None if the reply stands. Raises `Superseded`.

    Only a query's first call is made again, and once: of a later one its own results may have brought the words, and
    they leave with it.
    """
    chat, stores = state.chat, run.stores
    if reply.stop_reason != "refusal" or run.turns or chat.pin is None or chat.pin.left_out:
        return None
    number = state.view.replay.newest or newest_with_results(state.view.tracks)
    history = stores.history.across(chat.ancestry)
    before = history.records(chat.user, chat.conversation_id, [response_id(chat.query - 1)])
    if not number or not is_declined(before):
        return None
    pin = replace(chat.pin, left_out=number)
    try:
        event = left_out(run.number, query_id(number))
        run.log.append([event], [stores.chats.move_pin_action(chat, pin)], no_other_run)
    except ConditionFailed as lost:
        raise Superseded("the pin") from lost
    heard = stores.chats.load(chat.user, chat.chat_id)
    tries = begun_before(run.log.events(), run.number, heard.heard if heard else None)
    return replace(run, chat=replace(chat, pin=pin), before=tries)
