"""The model call of a turn: the request, or less of it if the service rejects its size (CONTRACT 6, 8)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.ask_for_notes import asked_in, is_text_cut, notes_room
from dualtrack.chat.message_before import message_before
from dualtrack.chat.refused_tools import names_a_tool
from dualtrack.chat.turn_attempt import no_other_run
from dualtrack.errors import ModelRefused
from dualtrack.memory.budget import STEPS, smaller
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.notes import NoteReader
from dualtrack.memory.refused_files import without_file, without_files
from dualtrack.memory.sending import Sending
from dualtrack.memory.view import SentRequest, View, asked_last, build
from dualtrack.models.cache_word import asking
from dualtrack.models.protocol import ignore
from dualtrack.models.receipt_data import Heard
from dualtrack.models.refusals import named_file
from dualtrack.models.stops import SECOND_ANSWER
from dualtrack.models.thinking import without_thinking
from dualtrack.models.turn import ModelReply
from dualtrack.streaming.delta_writer import DeltaWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dualtrack.chat.turn_attempt import TurnAttempt
    from dualtrack.memory.budget import ShorteningStep
    from dualtrack.models.turn import FirstByte

_LEAST_SECONDS: Final = 10.0
"""Minimum time left for a second try of a call."""

FOR_ITS_CONTENT: Final = 400
"""Statuses with which the model's service may reject a file that only it can fully check: the files are left out."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A request and the model's reply. ``without_room``: there is no reply, because even the smallest request was too
    long; ``refused``: the number of rejected requests; ``fixed``: cautious tokens of tools and system."""

    reply: ModelReply
    view: View
    sent: SentRequest
    cut: Sending
    without_room: bool = False
    refused: int = 0
    fixed: int = 0

    @property
    def sending(self) -> Sending:
        """As it is stored: the estimate is of the whole request."""
        return replace(self.cut, estimated=self.cut.estimated + self.fixed)


def is_forced_to_fit(run: TurnAttempt) -> bool:
    """Whether this is the second answer, forced to fit its schema."""
    return run.limit == SECOND_ANSWER and run.is_forced


def delta_writer(run: TurnAttempt) -> DeltaWriter:
    """What writes the turn's text as events, until a newer run of the turn begins."""
    return DeltaWriter(run.log, run.number, no_other_run, partial(_hear, run))


def _hear(run: TurnAttempt, first: FirstByte) -> None:
    """Note the first byte of the answer, before anything else of it is written."""
    heard = Heard(run.number, run.before.tries + 1, run.agent.model, first.served, first.usage)
    run.stores.chats.hear(run.chat, heard.behind(run.chat.heard))


def ask_model(run: TurnAttempt, frame: Mapping[str, Any], view: View, writer: DeltaWriter) -> ModelAnswer:
    """The model's answer to the view, or to less of it if the service rejects its size.

    If even the smallest request is too long, we write the answer ourselves (CONTRACT 6, 8).
    """
    steps, refusals = iter(STEPS), 0
    while True:
        sent = build(view)
        sending = Sending(view.cuts, message_tokens(sent.messages), asked=asked_last(view))
        try:
            asked = asking(message_before(run.chat, view, run.turns))
            reply = _ask(run, {**frame, "messages": list(sent.messages), **asked}, view, writer)
        except ModelRefused as refused:
            refusals += 1
            less = (
                None
                if is_forced_to_fit(run) and not refused.too_long
                else _reduced(view, sent, refused, steps)
            )
            if less is None and not refused.too_long:
                raise
            if less is None:
                nothing = ModelReply((), "model_context_window_exceeded")
                return ModelAnswer(nothing, view, sent, sending, without_room=True, refused=refusals)
            view = less
        else:
            sending = replace(sending, reported=reply.prompt_tokens)
            return ModelAnswer(reply, view, sent, sending, refused=refusals)


def _reduced(
    view: View, sent: SentRequest, refused: ModelRefused, steps: Iterator[ShorteningStep]
) -> View | None:
    """What to send after a rejection: each step is taken once, each file left out once, alone if it is named."""
    if refused.too_long:
        return smaller(view, steps)
    if refused.status != FOR_ITS_CONTENT or not sent.files or names_a_tool(refused):
        return None
    return without_file(view, sent.messages, named_file(refused.said)) or without_files(view)


def _ask(run: TurnAttempt, request: Mapping[str, Any], view: View, writer: DeltaWriter) -> ModelReply:
    """The model's answer. What has to fit a schema is not written before it is known to; notes are not written."""
    if run.is_held_back:
        return _answer(run, request, view, writer, ignore)
    if not any(view.asks):
        return _answer(run, request, view, writer, writer.write)
    noted = NoteReader(view.mark, asked_in(view))

    def write(text: str) -> None:
        was_behind = noted.is_behind_mark
        writer.write(noted.feed(text))
        if noted.is_behind_mark and noted.has_text and not was_behind:
            writer.end_text()

    reply = _answer(run, request, view, writer, write)
    writer.write(noted.end(cut=is_text_cut(reply), is_answer=not reply.calls_tools))
    return reply


def _answer(
    run: TurnAttempt,
    request: Mapping[str, Any],
    view: View,
    writer: DeltaWriter,
    write: Callable[[str], None],
) -> ModelReply:
    """The model's answer. If it was cut off while thinking, ask again without thinking; both calls are counted."""
    asked_at = time.monotonic()
    on_text = _reporting_first_text(write, run.told.first_text, asked_at)
    seconds = run.chat.call_seconds
    reply = run.model.stream(request, on_text, seconds, writer.begin, writer.think)
    room = run.max_tokens + notes_room(run, view)
    again = without_thinking(request, room) if reply.is_thought_alone else None
    left = seconds - (time.monotonic() - asked_at)
    if again is None or left < _LEAST_SECONDS:
        return reply

    def begin(first: FirstByte) -> None:
        """Both calls are paid, also if the second is cut."""
        writer.begin(replace(first, usage=reply.usage + first.usage))

    try:
        second = run.model.stream({**again, **asking("")}, on_text, left, begin, writer.think)
    except ModelRefused:
        return reply
    usage = reply.usage + second.usage
    return replace(
        second,
        usage=usage,
        calls=2,
        first_seconds=reply.first_seconds,
        message=reply.message,
        cache=reply.cache,
    )


def _reporting_first_text(
    on_text: Callable[[str], None], first_text: Callable[[float], None], asked_at: float
) -> Callable[[str], None]:
    """``on_text``, which also reports the time to the first text."""
    is_first = True

    def timed(text: str) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            first_text(time.monotonic() - asked_at)
        on_text(text)

    return timed
