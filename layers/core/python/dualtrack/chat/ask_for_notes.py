"""A turn that asks for notes on its query's long records, and its reply without them (`dualtrack.memory.notes`)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from dualtrack.ids import query_id, response_id
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.note_choice import (
    MOST_IGNORED,
    CallAhead,
    NoteAsk,
    expected_answer,
    records_to_note,
    spare_nanodollars,
)
from dualtrack.memory.notes import LONG_ANSWER, NOTES_TOKENS, read_notes
from dualtrack.memory.recall import RECALL_TOOLS
from dualtrack.memory.summaries import LONG_QUERY
from dualtrack.memory.view import build
from dualtrack.models.prices import rates_of
from dualtrack.models.windows import LEAST_MAXIMUM
from dualtrack.storage.chats import notes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dualtrack.chat.turn_attempt import TurnAttempt
    from dualtrack.memory.view import View
    from dualtrack.models.turn import ModelReply


def with_ask(run: TurnAttempt, view: View, fixed: int) -> View:
    """The view with what its last message asks notes for; ``fixed``: cautious tokens of tools and system. Nothing where
    the answer is read by a program or has a client's limits, or where the conversation cannot pay for it."""
    history, sums = run.profile.history, run.chat.memory.sums
    is_limited = run.is_held_back or run.wanted.stop or not _room(run)
    if not history.in_turn or is_limited or sums.ignored >= MOST_IGNORED or not _can_ask(view):
        return view
    asked = asked_in(view)
    records = _long_records(view, run.chat.query, history.whole_characters)
    asks = [ask for ask in records if ask.record_id not in asked]
    if not asks:
        return view
    sent = build(view)
    past = round(sums.counted * message_tokens(sent.messages[: sent.past]))
    own = round(sums.counted * message_tokens(sent.messages[sent.past :]))
    before = round(sums.counted * fixed) + past
    seen = run.turns[-1].usage.prompt_tokens if run.turns else before
    rates = rates_of(run.agent.model, before + own)
    call = CallAhead(before + own, seen, past, run.stores.clock())
    chosen = records_to_note(
        asks,
        spare_nanodollars(sums, call, rates),
        rates,
        open_notes=len(asked - notes_of(run.turns).keys()),
        again=bool(asked),
    )
    return replace(view, asks=(*view.asks, chosen))


def asked_in(view: View) -> frozenset[str]:
    """The records on which the query's messages ask for notes."""
    return frozenset(record_id for asked in view.asks for record_id in asked)


def notes_room(run: TurnAttempt, view: View) -> int:
    """The tokens that notes may take on top of an answer's: none above a limit of the client's own, nor above what the
    smallest of the models may write."""
    return _room(run) if any(view.asks) else 0


def _room(run: TurnAttempt) -> int:
    is_free = not run.wanted.max_tokens and run.max_tokens + NOTES_TOKENS <= LEAST_MAXIMUM
    return NOTES_TOKENS if is_free else 0


def is_text_cut(reply: ModelReply) -> bool:
    """Whether its last text is not whole."""
    return reply.stop_reason == "max_tokens" and not reply.calls_tools


def without_notes(reply: ModelReply, view: View) -> tuple[ModelReply, Mapping[str, str]]:
    """The reply as it is decided on, and its notes by record id. Cut off behind its mark, an answer is complete."""
    asked = asked_in(view)
    if not asked:
        return reply, MappingProxyType({})
    is_cut = is_text_cut(reply)
    texts = [block["text"] for block in reply.content if block["type"] == "text"]
    said, notes, ends_in_notes = read_notes(
        "".join(texts), view.mark, asked, cut=is_cut, is_answer=not reply.calls_tools
    )
    others = tuple(block for block in reply.content if block["type"] != "text")
    reason = "end_turn" if is_cut and ends_in_notes else reply.stop_reason
    content = (MappingProxyType({"type": "text", "text": said}), *others) if said else others
    return replace(reply, content=content, stop_reason=reason), MappingProxyType(dict(notes))


def _can_ask(view: View) -> bool:
    """Whether the last message is one to which an ask can be added."""
    return not view.turns or bool(view.turns[-1].calls or view.turns[-1].told)


def _long_records(view: View, query: int, whole: int) -> Iterator[NoteAsk]:
    """What may be noted: what is not sent on ``whole`` by its length, of results, the answer to come and, with results,
    the query. What only reads the past back has notes already."""
    for turn in view.turns:
        for call in turn.calls:
            if call.tool not in RECALL_TOOLS and len(turn.results[call.id].text) > whole:
                yield NoteAsk(call.id, len(turn.results[call.id].text))
    if view.turns and len(view.query.content) > max(LONG_QUERY, whole):
        yield NoteAsk(query_id(query), len(view.query.content))
    answer = expected_answer(view.tracks)
    if answer > whole:
        yield NoteAsk(response_id(query), answer)


def is_note_due(asked: Collection[str], answer: str, query: int) -> bool:
    """Whether a model that was asked for these notes would have written one: on the answer alone only if it is long."""
    return bool(set(asked) - {response_id(query)}) or (bool(asked) and len(answer.split()) > LONG_ANSWER)
