"""The figures of memory as a chat goes on: the arguments of `dualtrack.memory.full_history`, from what a step has at
hand. Nothing is read for them but, at the end, the conversation's own item."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.clock import epoch_of
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.full_history import MeasuredCall
from dualtrack.memory.recall import history_tokens, is_recall
from dualtrack.memory.view import whole_tokens
from dualtrack.models.cost_cap import lost_rates
from dualtrack.models.receipt_data import lost_usage
from dualtrack.profiles import DEFAULT_PROFILE, all_profiles
from dualtrack.storage.conversations import aside_of
from dualtrack.text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.records import Record
    from dualtrack.memory.view import SentRequest, View
    from dualtrack.models.receipt_data import LostCall, TurnCall
    from dualtrack.models.turn import ModelReply, TurnDecision
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ToolStores


def with_turn(
    chat: Chat,
    view: View,
    sent: SentRequest,
    estimated: int,
    fixed: int,
    reply: ModelReply,
    made: TurnCall,
    decision: TurnDecision,
) -> Chat:
    """The chat after a turn's call. ``estimated``: its whole request, ``fixed``: tools and system (cautious tokens)."""
    prompt = reply.usage.prompt_tokens // max(made.calls, 1)
    call = MeasuredCall(
        model=made.model,
        at=epoch_of(made.at),
        usage=reply.usage,
        calls=made.calls,
        lost=lost_nanodollars(made.model, made.lost, prompt),
        estimated=estimated,
        fixed=fixed,
        past=message_tokens(sent.messages[: sent.past]),
        whole=whole_tokens(view),
        has_files=sent.files > 0,
        is_last=bool(view.limit),
        is_recall=is_recall(call.tool for call in decision.calls),
        noted=_noted(view, reply, decision),
        rates=made.rates,
    )
    return replace(chat, memory=chat.memory.with_call(call))


def _noted(view: View, reply: ModelReply, decision: TurnDecision) -> int:
    """The tokens of output that are no answer: notes as they were written, however much of them is kept."""
    if not any(view.asks):
        return 0
    written = "".join(block["text"] for block in reply.content if block["type"] == "text")
    return max(estimate_tokens(written) - estimate_tokens(decision.text), 0)


def lost_nanodollars(model: str, lost: Sequence[LostCall], prompt: int) -> int:
    """The receipt's estimate for calls that were never recorded; ``prompt``: tokens of the call next to them."""
    spent = [(call, lost_usage(call, prompt)) for call in lost]
    return sum(lost_rates(call, model, usage).nanodollars(usage) for call, usage in spent)


def with_end(chat: Chat, records: Sequence[Record]) -> Chat:
    """The chat once its query has ended with these records."""
    profiles = all_profiles()
    profile = profiles.get(chat.profile) or profiles[DEFAULT_PROFILE]
    estimated = history_tokens(records, profile.result_limit)
    return replace(chat, memory=chat.memory.ended(chat.model, estimated))


def with_aside(stores: ToolStores, chat: Chat, cost: int) -> Chat:
    """The chat after its summaries, which cost this many 10⁻⁹ dollars. The conversation's figure is read again: the
    summaries of the query before may have come while this one ran."""
    history = stores.history
    before = aside_of(history.client, history.table, chat.user, chat.conversation_id)
    return replace(chat, memory=chat.memory.with_aside(before, cost))
