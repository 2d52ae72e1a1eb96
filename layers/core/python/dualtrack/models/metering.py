"""Model calls of a running tool, for its line of the receipt (CONTRACT 9).

A meter is active in the context of a tool call (`contextvars`): in the thread that runs it, and in the tasks and
threads that asyncio starts from there. Clients report their requests and usage to the active meter, if there is one (a
job that embeds a corpus has none). So the code between the tool call and the client does not have to pass a meter.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.clock import iso
from dualtrack.models.prices import ANTHROPIC, VOYAGE, call_rates
from dualtrack.models.receipt_data import SideCalls, ToolSideCalls
from dualtrack.models.turn import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class MeteredRequest:
    """A request: ``at`` in epoch seconds; ``usage`` is None until it is answered."""

    kind: Literal["model", "embedding"]
    model: str
    at: float
    seconds: float = 0.0
    usage: Usage | None = None


@dataclass(slots=True)
class Meter:
    """Collects the requests of a tool call, from several threads; each append is atomic."""

    questions: list[MeteredRequest] = field(default_factory=list)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Collect the requests made in this context."""
        token = _METER.set(self)
        try:
            yield
        finally:
            _METER.reset(token)

    def side_calls(self) -> tuple[ToolSideCalls, ...]:
        """The requests so far: a line for each model and kind. An unanswered request counts as a try."""
        by_model: dict[tuple[str, str], list[MeteredRequest]] = {}
        for question in tuple(self.questions):
            by_model.setdefault((question.kind, question.model), []).append(question)
        return tuple(_added(own) for own in by_model.values())


_METER: Final[ContextVar[Meter | None]] = ContextVar("meter", default=None)


@contextmanager
def asking(kind: Literal["model", "embedding"], model: str) -> Iterator[MeteredRequest]:
    """A context around a request; the caller sets ``usage`` from the answer."""
    question = MeteredRequest(kind, model, time.time())
    meter, began = _METER.get(), time.monotonic()
    if meter is not None:
        meter.questions.append(question)
    try:
        yield question
    finally:
        question.seconds = time.monotonic() - began


def _added(questions: list[MeteredRequest]) -> ToolSideCalls:
    first = questions[0]
    usages = [question.usage for question in questions if question.usage is not None]
    at, usage = iso(min(question.at for question in questions)), sum(usages, Usage())
    maker = VOYAGE if first.kind == "embedding" else ANTHROPIC
    side = SideCalls(
        at,
        first.model,
        round(sum(question.seconds for question in questions), 3),
        len(usages),
        len(questions),
        usage,
        rates=call_rates(None, first.model, usage, len(usages), at, maker),
    )
    return ToolSideCalls(first.kind, side)
