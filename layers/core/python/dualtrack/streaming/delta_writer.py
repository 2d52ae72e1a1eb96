"""Writes the text of a turn as events while it is generated: soon, but with few writes (CONTRACT 5). The first byte of
an answer is written before its text, which may come much later or never (CONTRACT 8).

Pieces of text are collected for at most 130 ms and written as one event, so that streaming text arrives at most
150 ms apart and a chat writes at most 8 deltas a second. A thread writes, so that writing never delays the
model's stream, and text is not held back when the model pauses.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from dualtrack.errors import ModelUnavailable, Superseded
from dualtrack.events import delta, thinking, written
from dualtrack.models.protocol import ignore
from dualtrack.text import EchoStripper

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from dualtrack.events import StoredEvent
    from dualtrack.models.turn import FirstByte
    from dualtrack.storage.event_log import EventLog

WRITE_SECONDS: Final = 0.13
THOUGHT_SECONDS: Final = 1.0
"""How long thinking is collected while there is no text: a short one is written together with the first text."""


class DeltaWriter:
    """A context manager around one model call; `write` raises the error that stopped the thread.

    ``heard`` records the first byte of an answer; it raises `Superseded` if this run has been overtaken.
    """

    def __init__(
        self,
        log: EventLog,
        turn: int,
        fence: Callable[[StoredEvent], None],
        heard: Callable[[FirstByte], None] = ignore,
    ) -> None:
        self._log = log
        self._turn = turn
        self._fence = fence
        self._heard = heard
        self._first: FirstByte | None = None
        self._stripper = EchoStripper()
        self._pending = ""
        self._thinking = EchoStripper()
        self._thought = ""
        self._is_written = False
        self._ended = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="deltas", daemon=True)

    def __enter__(self) -> DeltaWriter:
        self._thread.start()
        return self

    def begin(self, first: FirstByte) -> None:
        """Accept the beginning of an answer."""
        with self._changed:
            self._first = first
            self._changed.notify()

    def think(self, text: str) -> None:
        """Accept a piece of thinking; raises `Superseded` once this run has been overtaken."""
        with self._changed:
            if self._failure:
                raise self._failure
            self._thought += self._thinking.feed(text)
            self._changed.notify()

    def write(self, text: str) -> None:
        """Accept a piece of text; raises `Superseded` once this run has been overtaken."""
        with self._changed:
            if self._failure:
                raise self._failure
            self._pending += self._stripper.feed(text)
            self._changed.notify()

    def end_text(self) -> None:
        """Say that the text is complete, behind what was accepted of it."""
        with self._changed:
            self._pending += self._stripper.end()
            self._is_written = True
            self._changed.notify()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with self._changed:
            if kind is None:
                self._thought += self._thinking.end()
                self._pending += self._stripper.end()
            elif not issubclass(kind, ModelUnavailable):  # the text of a cut call is written: it is counted
                self._thought = self._pending = ""
            self._ended = True
            self._changed.notify()
        self._thread.join()
        if kind is None and self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            while (piece := self._next()) is not None:
                first, thought, text, is_written = piece
                if first:
                    self._heard(first)
                events = [thinking(self._turn, thought)] if thought else []
                if text:
                    events.append(delta(self._turn, text))
                if is_written:
                    events.append(written(self._turn))
                if not events:
                    continue
                started = time.monotonic()
                self._log.append(events, fence=self._fence)
                self._pause(WRITE_SECONDS - (time.monotonic() - started))
        except Exception as error:  # noqa: BLE001 - raised in the thread that streams
            with self._changed:
                self._failure = error if isinstance(error, Superseded) else _DeltaWriteError(error)

    def _next(self) -> tuple[FirstByte | None, str, str, bool] | None:
        """Wait for an answer's beginning, for thinking, for text or its end, and return them; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._thought or self._is_due())
            self._changed.wait_for(self._is_due, timeout=THOUGHT_SECONDS)
            first, self._first = self._first, None
            thought, self._thought = self._thought, ""
            text, self._pending = self._pending, ""
            is_written, self._is_written = self._is_written, False
            is_any = first or thought or text or is_written
            return (first, thought, text, is_written) if is_any else None

    def _is_due(self) -> bool:
        return bool(self._first or self._pending or self._is_written or self._ended)

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended, timeout=max(seconds, 0))


class _DeltaWriteError(RuntimeError):
    """The events could not be written: the step fails and is retried."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"The events could not be written: {cause}")
        self.__cause__ = cause
