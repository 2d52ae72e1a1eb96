"""The pause of a chat whose calls wait for decisions (DESIGN 2.20).

    every other call has its result ─► what the chat needs is kept until the pause is over ─► one transaction
        { chat paused, its lease and hold until then, an entry in the list of open decisions, `paused`;
          under an API key the chat holds what its model calls have cost }
    ─► the execution ends

Nothing runs until somebody decides (`dualtrack.chat.decide_calls`), cancels, or the time is up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.chat.agent import agent_of
from dualtrack.chat.chat_view import open_calls
from dualtrack.chat.move_credits import lines_of, move_credits
from dualtrack.chat.pauses import MAX_OF_ACCOUNT, MAX_OF_CHAT, MAX_OF_USER, paused
from dualtrack.chat.pay_calls import calls_begin
from dualtrack.chat.receipt import model_nanodollars
from dualtrack.chat.tell import told
from dualtrack.chat.tool_results import complete_results
from dualtrack.clock import iso
from dualtrack.errors import Superseded
from dualtrack.events import paused as paused_event
from dualtrack.requests import AFTER_PAUSE_SECONDS
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.tools.mcp.catalogue import keep_pinned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.chat.agent import Agent, AgentDeployment
    from dualtrack.chat.move_credits import StepWrites
    from dualtrack.credits.account import Account, AccountChange
    from dualtrack.events import StoredEvent
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.stores import TurnStores


class _TooManyError(Exception):
    """Too many chats wait, or this one did too often; the message says so to the model."""


def pause_chat(stores: TurnStores, chat: Chat, number: int, deployed: AgentDeployment) -> None:
    """Pause the chat behind its turn ``number``. Raises `Superseded` if it has moved on meanwhile, or if too many chats
    wait already: then the calls are refused, and the chat can go on."""
    turn = stores.chats.turn(chat, number)
    if turn is None:
        raise Superseded(f"turn {number}")
    complete_results(stores, chat, turn, dead=True)
    log = stores.log(chat)
    log.next_slot()
    loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
    if loaded is None or loaded[0].status != "running" or len(loaded[1]) != number or not loaded[1][-1].waits:
        raise Superseded("the pause")
    chat, turn = loaded[0], loaded[1][-1]
    try:
        _commit(stores, log, chat, loaded[1], agent_of(stores.agents, chat, deployed))
    except _TooManyError as error:
        _refuse(stores, log, chat, turn, f"Tool execution failed: this call needs a decision, but {error}.")
        raise Superseded("too many pauses") from error
    except ConditionFailed as lost:
        raise Superseded(", ".join(lost.items)) from lost


def _commit(
    stores: TurnStores, log: EventLog, chat: Chat, turns: Sequence[RecordedTurn], agent: Agent
) -> None:
    now, turn, spent = stores.clock(), turns[-1], _spent(stores, chat, turns)
    after = paused(chat, turn, agent.profile.pause_seconds, now)
    until = after.deadline + AFTER_PAUSE_SECONDS
    if chat.pin:
        stores.agents.keep(agent.version, agent.text)
        keep_pinned(stores.cache, chat.pin.catalogue, now)
    log.keep(until)

    def hold(account: Account) -> AccountChange:
        # between the account's reading and its conditional write, so that of two pauses at once one counts the other
        _count(stores, chat)
        return account.pause(chat.chat_id, until, now, spent)

    def recorded(change: AccountChange) -> StepWrites:
        moved = after.spent.moved(lines_of(change, chat.chat_id))
        writes = [
            stores.chats.change_action(chat, replace(after, spent=moved)),
            stores.conversations.hold_action(chat.user, chat.conversation_id, chat.chat_id, until),
            stores.paused.put_action(chat.payer, chat, after.deadline),
            *told(stores, after),
        ]
        return [paused_event(turn.number, open_calls(turn), iso(after.deadline))], writes

    move_credits(stores.ledger, log, chat.payer, hold, recorded, _no_event)


def _spent(stores: TurnStores, chat: Chat, turns: Sequence[RecordedTurn]) -> int:
    """What the model calls of a chat by a key have cost so far (10⁻⁹ dollars)."""
    if not chat.costs:
        return 0
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query, texts=set())
    return model_nanodollars(chat, turns, records)


def _count(stores: TurnStores, chat: Chat) -> None:
    """Raises `_TooManyError`."""
    if chat.pauses >= MAX_OF_CHAT:
        raise _TooManyError(f"this chat has waited for decisions {MAX_OF_CHAT} times already")
    listed = stores.paused.of(chat.payer)
    if len(listed) >= MAX_OF_ACCOUNT:
        raise _TooManyError(f"{MAX_OF_ACCOUNT} chats of this account wait for decisions already")
    if sum(other.user == chat.user for other in listed) >= MAX_OF_USER:
        raise _TooManyError(f"{MAX_OF_USER} chats of this user wait for decisions already")


def _refuse(stores: TurnStores, log: EventLog, chat: Chat, turn: RecordedTurn, reason: str) -> None:
    calls = tuple(replace(call, refused=reason) if call.is_open else call for call in turn.calls)
    refused = [call for call in calls if call.refused == reason]
    writes = stores.chats.decide_writes(chat, turn, replace(turn, calls=calls))
    log.append([calls_begin(turn.number, refused)], [*writes, stores.chats.same_check(chat)])


def _no_event(event: StoredEvent) -> None:
    """The fence: every event up to the pause is kept as long as the pause."""
    raise Superseded(event.event)
