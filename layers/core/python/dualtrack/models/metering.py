"""What is asked of models while a tool's call runs, for its line of the receipt (CONTRACT 9).

A meter is on in the context of one call (`contextvars`): in the thread that runs it, and in the tasks and threads that
asyncio starts from there. Clients say to it what they asked and what that took; without one they say it to nobody, as
in a job that embeds a corpus. So nothing between the call and the client has to hand a meter on.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.clock import iso
from dualtrack.models.spent import Asked, Side
from dualtrack.models.turn import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Question:
    """One request: ``at`` in epoch seconds; ``usage`` is None until it was answered."""

    kind: Literal["model", "embedding"]
    model: str
    at: float
    seconds: float = 0.0
    usage: Usage | None = None


@dataclass(slots=True)
class Meter:
    """Collects the questions of one call; they come from several threads, each appended whole."""

    questions: list[Question] = field(default_factory=list)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Collect what is asked in this context."""
        token = _METER.set(self)
        try:
            yield
        finally:
            _METER.reset(token)

    def asked(self) -> tuple[Asked, ...]:
        """So far: one line for each model and kind. A question that is not answered yet is a try."""
        found: dict[tuple[str, str], list[Question]] = {}
        for one in tuple(self.questions):
            found.setdefault((one.kind, one.model), []).append(one)
        return tuple(_added(own) for own in found.values())


_METER: Final[ContextVar[Meter | None]] = ContextVar("meter", default=None)


@contextmanager
def asking(kind: Literal["model", "embedding"], model: str) -> Iterator[Question]:
    """Around one request; who asks sets the answer's ``usage``."""
    question = Question(kind, model, time.time())
    meter, began = _METER.get(), time.monotonic()
    if meter is not None:
        meter.questions.append(question)
    try:
        yield question
    finally:
        question.seconds = time.monotonic() - began


def _added(questions: list[Question]) -> Asked:
    first = questions[0]
    usages = [one.usage for one in questions if one.usage is not None]
    side = Side(
        iso(min(one.at for one in questions)),
        first.model,
        round(sum(one.seconds for one in questions), 3),
        len(usages),
        len(questions),
        sum(usages, Usage()),
    )
    return Asked(first.kind, side)
