"""A turn that asks for notes on its query's long records, and its reply without them (`dualtrack.memory.notes`)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.ids import query_id, response_id
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.note_choice import (
    EXPECTED_ANSWER,
    MOST_IGNORED,
    CallAhead,
    NoteAsk,
    records_to_note,
    spare_nanodollars,
)
from dualtrack.memory.notes import NOTES_TOKENS, read_notes
from dualtrack.memory.recall import RECALL_TOOLS
from dualtrack.memory.summaries import LONG_QUERY
from dualtrack.memory.view import build
from dualtrack.models.prices import rates_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.chat.turn_attempt import TurnAttempt
    from dualtrack.memory.view import View
    from dualtrack.models.turn import ModelReply

_RATIO: Final = 1 / 1.3
"""Of the service's counts to our cautious estimate, before the first call."""


def with_ask(run: TurnAttempt, view: View, fixed: int) -> View:
    """The view with what its last message asks notes for; ``fixed``: cautious tokens of tools and system. Nothing where
    the answer is read by a program, or where the conversation cannot pay for it."""
    history, sums = run.profile.history, run.chat.memory.sums
    if not history.in_turn or run.is_held_back or sums.ignored >= MOST_IGNORED or not _can_ask(view):
        return view
    asked, noted = asked_in(view), {record_id for turn in run.turns for record_id in turn.notes}
    asks = [ask for ask in _long_records(view, run.chat.query) if ask.record_id not in asked]
    now, ratio = run.stores.clock(), sums.ratio or _RATIO
    sent = build(view)
    prompt = round(ratio * (message_tokens(sent.messages) + fixed))
    past = round(ratio * message_tokens(sent.messages[: sent.past]))
    own = round(ratio * message_tokens(sent.messages[sent.past :]))
    seen = run.turns[-1].usage.prompt_tokens if run.turns else prompt - own
    rates = rates_of(run.agent.model, prompt)
    spare = spare_nanodollars(sums, CallAhead(prompt, seen, past, now), rates)
    chosen = records_to_note(asks, spare, rates, open_notes=len(asked - noted), again=bool(asked))
    return replace(view, asks=(*view.asks, chosen))


def asked_in(view: View) -> frozenset[str]:
    """The records on which the query's messages ask for notes."""
    return frozenset(record_id for asked in view.asks for record_id in asked)


def notes_room(view: View) -> int:
    """The tokens that notes may take on top of an answer's."""
    return NOTES_TOKENS if any(view.asks) else 0


def without_notes(reply: ModelReply, view: View) -> tuple[ModelReply, Mapping[str, str]]:
    """The reply as it is decided on, and its notes by record id. Cut off behind its mark, an answer is complete."""
    asked = asked_in(view)
    if not asked:
        return reply, MappingProxyType({})
    is_cut = reply.stop_reason == "max_tokens"
    texts = [block["text"] for block in reply.content if block["type"] == "text"]
    said, notes, is_behind_mark = read_notes("".join(texts), view.mark, asked, cut=is_cut and not reply.cut)
    others = tuple(block for block in reply.content if block["type"] != "text")
    reason = "end_turn" if is_cut and is_behind_mark and not reply.cut else reply.stop_reason
    content = (MappingProxyType({"type": "text", "text": said}), *others) if said else others
    return replace(reply, content=content, stop_reason=reason), MappingProxyType(dict(notes))


def _can_ask(view: View) -> bool:
    """Whether the last message is one to which an ask can be added."""
    return not view.turns or bool(view.turns[-1].calls or view.turns[-1].told)


def _long_records(view: View, query: int) -> Iterator[NoteAsk]:
    """What may be noted: results, the answer to come and, with results, a long query. What only reads the past back
    has notes already."""
    for turn in view.turns:
        for call in turn.calls:
            if call.tool not in RECALL_TOOLS:
                yield NoteAsk(call.id, len(turn.results[call.id].text))
    if view.turns and len(view.query.content) > LONG_QUERY:
        yield NoteAsk(query_id(query), len(view.query.content))
    yield NoteAsk(response_id(query), EXPECTED_ANSWER)
