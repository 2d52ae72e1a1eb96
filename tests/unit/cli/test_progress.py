"""The views: what is shown on a terminal and what is written to a pipe."""

from __future__ import annotations

import io
import re
import threading
from typing import TYPE_CHECKING, Any

from dualtrack.frozen import freeze
from dualtrack_stack.cli.client import ChatEvent
from dualtrack_stack.cli.progress import LiveView, PlainView, view_on
from dualtrack_stack.cli.transcript import facts_of
from rich.console import Console

from tests.servers.api_server import answered, chat_object

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def events(script: list[tuple[str, dict[str, Any]]]) -> list[ChatEvent]:
    return [ChatEvent(number, kind, freeze(data)) for number, (kind, data) in enumerate(script, 1)]


def terminal(height: int = 24, get_time: Callable[[], float] | None = None) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        width=80,
        height=height,
        legacy_windows=False,
        get_time=get_time,
        _environ={},
    )


def drawn(console: Console, view: LiveView) -> str:
    with console.capture() as captured:
        console.print(view.region())
    return captured.get()


def busy(tries: int) -> list[tuple[str, dict[str, Any]]]:
    """So many calls of a turn, each refused."""
    begins = "turn", {"turn": 1, "max_turns": 15, "final": False}
    return [
        event
        for number in range(1, tries + 1)
        for event in (begins, ("retrying", {"turn": 1, "reason": "overloaded", "try": number, "seconds": 8}))
    ]


def test_waiting_for_a_busy_model_is_shown_on_one_line() -> None:
    """On a terminal in place; in a pipe with the tries 1, 2, 4, 8 and 16."""
    script = busy(26)
    stream, console = io.StringIO(), terminal()
    plain, live = PlainView(stream), LiveView(console)
    with console.capture() as captured:
        for event in events(script):
            plain.show(event)
            live.show(event)
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["turn 1 of 15", "  The model is busy: try 1, again in 8 s"]
    assert len(lines) == 6
    assert "busy" not in captured.get()
    assert drawn(console, live).count("busy") == 1
    assert "The model is busy: try 26, again in 8 s" in drawn(console, live)


def test_a_pipe_gets_a_readable_transcript() -> None:
    stream = io.StringIO()
    with PlainView(stream) as view:
        for event in events(answered("Use **OAuth 2.0**.\n\nThen sign.")):
            view.show(event)
    assert stream.getvalue().splitlines() == [
        "turn 1 of 15",
        "  I will look it up.",
        '    1.2 s  ok      retrieve_documentation query="OAuth"',
        "turn 2 of 15",
        "",
        "Use **OAuth 2.0**.",
        "",
        "Then sign.",
        "",
        "Sources",
        "  1. Auth guide  https://docs.example/auth",
        "  2. Earlier  q1-r",
        "",
        "15 credits, 1,035 left · $0.0012, with the full history $0.0048: −75 % so far (estimated)",
    ]


def test_a_source_that_the_answer_links_is_not_listed_again() -> None:
    stream = io.StringIO()
    with PlainView(stream) as view:
        for event in events(answered("See [the guide](https://docs.example/auth).")):
            view.show(event)
    assert "\nMore sources\n  1. Earlier  q1-r\n" in stream.getvalue()
    assert stream.getvalue().count("docs.example") == 1


def test_the_offline_models_figures_are_called_fictional() -> None:
    shown = dict(facts_of(chat_object(fictional=True)))
    assert shown["cost"].endswith("so far, estimated (fictional: the offline model answered)")


def test_with_json_only_progress_is_shown() -> None:
    stream = io.StringIO()
    with PlainView(stream, progress_only=True) as view:
        for event in events(answered()):
            view.show(event)
    assert "retrieve_documentation" in stream.getvalue()
    assert "OAuth 2.0" not in stream.getvalue()
    assert "Sources" not in stream.getvalue()


def test_an_incomplete_answer_is_marked() -> None:
    stream = io.StringIO()
    with PlainView(stream) as view:
        for event in events([("done", chat_object(stop="max_turns"))]):
            view.show(event)
    assert "Note: the turn limit was reached" in stream.getvalue()


def test_without_a_terminal_there_is_no_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(view_on(io.StringIO()), PlainView)


def test_the_region_follows_the_text_and_the_running_tools() -> None:
    console = terminal()
    now = [0.0]
    view = LiveView(console, clock=lambda: now[0])
    script = events(answered())
    assert "starting" in drawn(console, view)
    for event in script[:4]:
        view.show(event)
    assert "I will look it up." in drawn(console, view)
    view.show(script[4])
    now[0] = 3.0
    running = drawn(console, view)
    assert "retrieve_documentation" in running
    assert "3 s" in running
    assert "I will look it up." not in running, "settled above the region"
    view.show(script[5])
    assert "retrieve_documentation" not in drawn(console, view)


def test_a_repeated_turn_takes_its_text_off_the_screen() -> None:
    console = terminal()
    view = LiveView(console)
    turn = ("turn", {"turn": 1, "max_turns": 15, "final": False})
    for event in events([turn, ("delta", {"turn": 1, "text": "Half an ans"}), turn]):
        view.show(event)
    assert "Half an ans" not in drawn(console, view)
    assert "Half an ans" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_long_text_never_makes_the_region_higher_than_the_terminal() -> None:
    console = terminal(height=12)
    view = LiveView(console)
    text = "\n\n".join(f"Paragraph {number}." for number in range(100))
    script: list[tuple[str, dict[str, Any]]] = [
        ("turn", {"turn": 1, "max_turns": 15, "final": False}),
        ("delta", {"turn": 1, "text": text}),
    ]
    for event in events(script):
        view.show(event)
    region = drawn(console, view)
    assert len(region.splitlines()) <= 11
    assert "Paragraph 99." in region


def test_settled_text_is_above_the_region_at_the_end() -> None:
    console = terminal()
    with LiveView(console) as view:
        for event in events(answered()):
            view.show(event)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for expected in (
        "turn 1 of 15",
        "I will look it up.",
        "OAuth 2.0",
        "Auth guide",
        "−75 % so far",
    ):
        assert expected in shown
    assert shown.endswith("\n")
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "the cursor is back"


def test_no_color_means_no_colour() -> None:
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        width=80,
        height=24,
        legacy_windows=False,
        _environ={"NO_COLOR": "1"},
    )
    with LiveView(console) as view:
        for event in events(answered()):
            view.show(event)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert not [code for code in ("\x1b[3", "\x1b[9") if any(f"{code}{n}m" in shown for n in range(8))]


def test_no_line_is_lost_while_another_thread_draws() -> None:
    """The other thread settles three paragraphs and shrinks the region between the start and the end of a print:
    without a lock, the print would erase the paragraphs as part of the region it knew."""
    others: list[threading.Thread] = []
    turn, grown, shrunk = events(
        [
            ("turn", {"turn": 1, "max_turns": 15}),
            ("delta", {"turn": 1, "text": "One.\n\nTwo.\n\nThree."}),
            ("tool_calls_start", {"turn": 1, "calls": [{"id": "q1-t1", "tool": "look", "input": {}}]}),
        ]
    )

    def shrink() -> None:
        view.show(shrunk)
        done.set()

    def clock() -> float:
        """Read by the region's animation, and so in the middle of a print."""
        if armed.is_set():
            armed.clear()
            others.append(threading.Thread(target=shrink))
            others[0].start()
            done.wait(0.2)  # times out if there is one lock
        return 0.0

    armed, done = threading.Event(), threading.Event()
    console = terminal(get_time=clock)
    view = LiveView(console)
    with view:
        view.show(turn)
        view.show(grown)
        view.refresh()
        armed.set()
        view.notice("a line")
        others[0].join()
    shown = on_screen(console.file.getvalue())  # type: ignore[attr-defined]
    assert sorted(shown) == sorted(["● turn 1 of 15", "a line", "  One.", "  Two.", "  Three."])


def on_screen(written: str) -> list[str]:
    """The lines of a screen of unlimited height, without blank lines."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", written):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1])
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith(("\x1b", "\r")):
            lines[row] += part
    return [line.rstrip() for line in lines if line.strip()]
