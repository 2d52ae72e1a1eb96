"""The output of a running chat: `LiveView` on a terminal, `PlainView` in a pipe or a file.

Both show the same blocks in the same order. The live view keeps what may still change (streaming text,
running tools) in a region at the bottom, and prints finished blocks above it.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from dualtrack_stack.cli.markdown import Markdown
from dualtrack_stack.cli.transcript import (
    ChatDone,
    ChatError,
    ChatTranscript,
    DecidedLine,
    FinalAnswer,
    FinishedCall,
    InterimText,
    PausedCalls,
    Retrying,
    TurnBegan,
    Unpaid,
    clean,
    facts_of,
    figures_of,
    sources_of,
    sources_title,
    step,
    stop_note,
    turn_title,
    wait_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from dualtrack import answers
    from rich.console import ConsoleOptions, ConsoleRenderable, RenderResult

    from dualtrack_stack.cli.client import ChatEvent
    from dualtrack_stack.cli.transcript import TranscriptBlock

    Clock = Callable[[], float]

_REFRESH_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class OutputReader:
    """The user: their ``name``, and the command that grants them more credits (``grants``); empty if unknown.
    ``in_full``: they want ids and every figure."""

    name: str = ""
    grants: str = ""
    in_full: bool = False


class ChatOutput(Protocol):
    """The output of a chat."""

    def __enter__(self) -> ChatOutput: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def notice(self, text: str) -> None:
        """A remark about the stack, not part of the chat."""

    def show(self, event: ChatEvent) -> None:
        """One more event of the chat."""

    def aside(self) -> AbstractContextManager[None]:
        """Meanwhile somebody else writes to the terminal."""
        ...


NOBODY: Final = OutputReader()


def view_on(stream: IO[str], reader: OutputReader = NOBODY, *, progress_only: bool = False) -> ChatOutput:
    """The view that suits a stream. ``progress_only`` leaves out the answer and what follows it."""
    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    if stream.isatty() and console.is_interactive:
        return LiveView(console, reader, progress_only=progress_only)
    return PlainView(stream, reader, progress_only=progress_only)


class PlainView:
    """Lines of text, each written when it is final; no colour, no cursor movement."""

    def __init__(
        self, stream: IO[str], reader: OutputReader = NOBODY, *, progress_only: bool = False
    ) -> None:
        self._stream = stream
        self._reader = reader
        self._progress_only = progress_only
        self._transcript = ChatTranscript()

    def __enter__(self) -> PlainView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.flush()

    def notice(self, text: str) -> None:
        """One line."""
        self._write(text)

    def aside(self) -> AbstractContextManager[None]:
        """Nothing is in the way."""
        return nullcontext()

    def show(self, event: ChatEvent) -> None:
        """The lines that the event settles."""
        self._transcript, blocks = step(self._transcript, event, time.monotonic())
        for block in blocks:
            for line in self._lines(block):
                self._write(line)

    def _write(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def _lines(self, block: TranscriptBlock) -> tuple[str, ...]:
        lines: tuple[str, ...] = ()
        match block:
            case TurnBegan():
                lines = (_title(block),)
            case Retrying() if block.is_shown_as_line:
                lines = (f"  {wait_line(block)}",)
            case InterimText(text):
                lines = tuple(f"  {line}".rstrip() for line in text.splitlines())
            case FinishedCall():
                mark = "failed" if block.problem else "ok"
                problem = f"  ({block.problem})" if block.problem else ""
                lines = (f"  {_seconds(block.seconds)}  {mark:<6}  {_call(block)}{problem}",)
            case PausedCalls(calls):
                lines = tuple(f"  waits   {call.tool} {call.detail}".rstrip() for call in calls)
            case DecidedLine():
                lines = (f"  {block.outcome}: {block.tool} {block.detail}".rstrip(),)
            case Unpaid():
                lines = (f"  {_unpaid(block, self._reader)}",)
            case FinalAnswer(response) if not self._progress_only:
                lines = ("", response.strip("\n"), "")
            case ChatDone(chat) if not self._progress_only:
                lines = self._ending(chat)
        return lines

    def _ending(self, chat: answers.Chat) -> tuple[str, ...]:
        sources = tuple(
            f"  {number}. {title}{'  ' if where else ''}{where}"
            for number, (title, where) in enumerate(sources_of(chat), 1)
        )
        note = _note(chat, self._reader)
        return (
            *((note, "") if note else ()),
            *((sources_title(chat), *sources, "") if sources else ()),
            *self._figures(chat),
        )

    def _figures(self, chat: answers.Chat) -> tuple[str, ...]:
        if self._reader.in_full:
            return tuple(f"{label:<13}{text}" for label, text in facts_of(chat, self._reader.name))
        figures, notes = figures_of(chat)
        return (f"{figures} ({notes})" if notes else figures,)


class LiveView:
    """An updating region at the bottom of a terminal, with finished blocks above it. All drawing holds one
    lock from its first look at the screen to its last character. Otherwise the thread that updates the region
    could measure it before a line is printed and then erase that line.
    """

    def __init__(
        self,
        console: Console,
        reader: OutputReader = NOBODY,
        *,
        progress_only: bool = False,
        clock: Clock = time.monotonic,
    ) -> None:
        self._console = console
        self._reader = reader
        self._progress_only = progress_only
        self._clock = clock
        self._transcript = ChatTranscript(since=clock())
        unicode = console.encoding.startswith("utf")
        self._ok, self._bad, self._dot = ("✓", "✗", "●") if unicode else ("+", "x", "*")
        self._spinner = Spinner("dots" if unicode else "line", style="cyan")
        self._live = Live(console=console, get_renderable=self.region, auto_refresh=False, transient=True)
        self._drawing = threading.Lock()
        self._ended = threading.Event()
        self._moves = threading.Thread(target=self._move, name="live view", daemon=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        self._moves.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._moves.join()
        self._live.stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Without the region, which comes back below what was written meanwhile."""
        with self._drawing:
            self._live.stop()
        yield
        with self._drawing:
            self._live.start()

    def refresh(self) -> None:
        """Draw the region as it is now."""
        with self._drawing:
            if self._live.is_started:
                self._live.refresh()

    def _move(self) -> None:
        while not self._ended.wait(_REFRESH_SECONDS):
            self.refresh()

    def notice(self, text: str) -> None:
        """One dim line above the region."""
        with self._drawing:
            self._console.print(Text(text, style="yellow"))

    def show(self, event: ChatEvent) -> None:
        """The region updates itself; blocks finished by the event go above it."""
        with self._drawing:
            self._transcript, blocks = step(self._transcript, event, self._clock())
            for block in blocks:
                if isinstance(block, ChatDone | ChatError):
                    self._live.stop()
                for part in self._parts(block):
                    self._console.print(part)

    def region(self) -> ConsoleRenderable:
        """What may still change: the end of the text so far, the running tools, the current activity."""
        now = self._transcript
        parts: list[ConsoleRenderable] = []
        if now.text.strip():
            used = len(now.running) + 3
            parts.append(_Tail(Markdown(clean(now.text)), max(3, self._console.height - used)))
        parts += [_indented(self._moving(f"{call.tool} ", call.detail, call.since)) for call in now.running]
        if not now.running:
            parts.append(self._moving(self._activity(now), "", None if now.waiting else now.since))
        return Group(*parts)

    def _activity(self, now: ChatTranscript) -> str:
        if now.answered:
            return "summarising for the next question"
        if not now.turn:
            return "starting"
        if now.asking:
            return "waiting for a decision"
        if now.waiting:
            return wait_line(now.waiting, self._clock() - now.since)
        return "writing" if now.text.strip() else "thinking"

    def _moving(self, what: str, detail: str, since: float | None) -> ConsoleRenderable:
        row = Table.grid(padding=(0, 1))
        row.add_column(width=1)
        row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_column(justify="right", no_wrap=True)
        line = Text.assemble(what, (detail, "dim"))
        passed = "" if since is None else f"{max(0.0, self._clock() - since):.0f} s"
        row.add_row(self._spinner, line, Text(passed, style="dim"))
        return row

    def _parts(self, block: TranscriptBlock) -> tuple[ConsoleRenderable, ...]:
        parts: tuple[ConsoleRenderable, ...] = ()
        match block:
            case TurnBegan():
                parts = (Text.assemble((f"{self._dot} ", "cyan"), (_title(block), "bold")),)
            case InterimText(text):
                parts = (_indented(Markdown(text, style="dim")),)
            case FinishedCall():
                parts = (self._called(block),)
            case DecidedLine():
                mark = (f"  {self._bad} ", "red") if block.is_refused else (f"  {self._ok} ", "green")
                parts = (Text.assemble(mark, block.tool, (f"  {block.outcome}", "dim")),)
            case Unpaid():
                parts = (Text(f"  {_unpaid(block, self._reader)}", style="yellow"),)
            case FinalAnswer(response) if not self._progress_only:
                parts = (Text(""), Markdown(response), Text(""))
            case ChatDone(chat) if not self._progress_only:
                parts = self._ending(chat)
        return parts

    def _called(self, block: FinishedCall) -> ConsoleRenderable:
        mark = (f"  {self._bad} ", "red") if block.problem else (f"  {self._ok} ", "green")
        line = Text.assemble(
            mark, block.tool, " ", (block.detail, "dim"), "  ", (_seconds(block.seconds).strip(), "cyan")
        )
        if block.problem:
            line.append(f"\n    {block.problem}", style="red")
        return line

    def _ending(self, chat: answers.Chat) -> tuple[ConsoleRenderable, ...]:
        parts: list[ConsoleRenderable] = []
        if note := _note(chat, self._reader):
            parts += [Text(note, style="yellow"), Text("")]
        if sources := sources_of(chat):
            parts.append(Text(sources_title(chat), style="bold"))
            parts += [
                Text.assemble(f"  {number}. {title}  ", (where, "dim"))
                for number, (title, where) in enumerate(sources, 1)
            ]
            parts.append(Text(""))
        return (*parts, self._figures(chat))

    def _figures(self, chat: answers.Chat) -> ConsoleRenderable:
        if not self._reader.in_full:
            figures, notes = figures_of(chat)
            return Text.assemble(figures, (f" ({notes})" if notes else "", "dim"))
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim")
        for label, text in facts_of(chat, self._reader.name):
            facts.add_row(label, text)
        return facts


class _Tail:
    """The last lines of something: a region higher than the terminal could not be redrawn in place."""

    def __init__(self, inner: ConsoleRenderable, height: int) -> None:
        self._inner = inner
        self._height = height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._inner, options.update(height=None), pad=False)
        for line in lines[-self._height :]:
            yield from line
            yield Segment.line()


def _indented(inner: ConsoleRenderable) -> ConsoleRenderable:
    return Padding(inner, (0, 0, 0, 2))


def _title(block: TurnBegan) -> str:
    title = turn_title(block.turn, block.max_turns, final=block.final, misfit=block.misfit)
    return f"{title}, retried" if block.again else title


def _call(block: FinishedCall) -> str:
    return f"{block.tool} {block.detail}".rstrip()


def _seconds(seconds: float | None) -> str:
    return "    -  " if seconds is None else f"{seconds:5.1f} s"


def _unpaid(block: Unpaid, reader: OutputReader) -> str:
    problem = "not enough credits for more tools"
    if block.required is not None and block.available is not None:
        problem = f"{problem}: {block.required} needed, {block.available} available"
    return f"{problem}; more with: {reader.grants}" if reader.grants else problem


def _note(chat: answers.Chat, reader: OutputReader) -> str:
    """Why an answer is incomplete, and what to do; else nothing."""
    note = stop_note(chat)
    if not note:
        return ""
    short = chat.get("stop") == "insufficient_credits" and reader.grants
    return f"Note: {note}. More credits: {reader.grants}" if short else f"Note: {note}."
