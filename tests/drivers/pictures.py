"""The pictures of README and docs/terminal.md, of a real run: docs/images/terminal-*.svg, page-{light,dark,phone}.png.

Beside ``uv run dualtrack dev --reset``: ``uv run --with pyte python -m tests.drivers.pictures http://127.0.0.1:8000``.
"""

from __future__ import annotations

import io
import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.clients.browser import chromium
from tests.clients.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
QUESTION: Final = "How do I set up OAuth for Twitter ads?"
FOLLOW_UP: Final = "Show me the full code from earlier"
SIZES: Final = {
    "page-light": ("light", 1280, 800),
    "page-dark": ("dark", 1280, 800),
    "page-phone": ("light", 390, 780),
}
THEME: Final = TerminalTheme(
    (27, 31, 36),
    (222, 226, 230),
    [(27, 31, 36), (240, 113, 120), (126, 205, 140), (229, 192, 123),
     (110, 170, 240), (198, 146, 233), (94, 200, 205), (222, 226, 230)],
)  # fmt: skip
_COLUMNS: Final = 120
_ROWS: Final = 400
_PROMPT: Final = "\x1b[?2004h"
"""What the terminal is sent when it may be typed at: bracketed paste begins."""
_NAMES: Final = {"brown": "yellow", "default": None}
"""What pyte calls colours otherwise than rich."""


def terminal_pictures() -> None:
    """A first chat, its follow-up, a conversation in the terminal, and a chat that is followed afterwards."""
    with Terminal("chat", QUESTION, columns=_COLUMNS, rows=_ROWS) as terminal:
        terminal.end()
        first = drawn(terminal.shown)
    save("terminal-chat", f"uv run dualtrack chat “{QUESTION}”", shortened(first, 15, 8))
    with Terminal("chat", "--last", columns=_COLUMNS, rows=_ROWS) as terminal:
        for line in ("/help\r", f"{FOLLOW_UP}\r", "/cost\r", "\x04"):
            terminal.until(_PROMPT)
            terminal.type(line)
        terminal.end()
        talk = drawn(terminal.shown)
    save("terminal-conversation", "uv run dualtrack chat --last", shortened(talk, 30, 24))
    chat = next(str(line).split()[1] for line in first if str(line).startswith("chat "))
    with Terminal("watch", chat, columns=_COLUMNS, rows=_ROWS) as terminal:
        terminal.end()
        save("terminal-watch", f"uv run dualtrack watch {chat}", shortened(drawn(terminal.shown), 12, 8))


def drawn(shown: str) -> list[Text]:
    """The lines of a terminal to which this was sent, with their colours."""
    import pyte  # type: ignore[import-not-found]  # in no dependency group: `uv run --with pyte`

    screen = pyte.Screen(_COLUMNS, _ROWS)
    pyte.Stream(screen).feed(shown)
    lines = [Text.assemble(*_cells(screen, row)) for row in range(_ROWS)]
    for line in lines:
        line.rstrip()
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def _cells(screen: Any, row: int) -> Iterator[tuple[str, Style]]:
    cells = [screen.buffer[row][column] for column in range(screen.columns)]
    for style, equal in itertools.groupby(cells, _style):
        yield "".join(cell.data for cell in equal), style


def _style(cell: Any) -> Style:
    colour = _NAMES.get(cell.fg, cell.fg)
    if re.fullmatch(r"[0-9a-f]{6}", colour or ""):
        colour = f"#{colour}"
    return Style(color=colour, bold=cell.bold, italic=cell.italics, underline=cell.underscore)


def shortened(lines: list[Text], first: int, last: int) -> list[Text]:
    """The first and the last lines, with a mark where some are left out."""
    if len(lines) <= first + last + 1:
        return lines
    return [*lines[:first], Text("…"), *lines[-last:]]


def save(name: str, title: str, lines: list[Text]) -> None:
    """As an SVG; with an empty line at the end, without which the last one is cut."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in (*lines, Text()):
        console.print(line, soft_wrap=True)
    console.save_svg(str(IMAGES / f"{name}.svg"), title=title, theme=THEME, unique_id=name)


def page_pictures(url: str) -> None:
    """The latest conversation as the page shows it, in two sizes and two themes."""
    with chromium() as browser:
        for name, (scheme, width, height) in SIZES.items():
            _page_picture(browser, url, name, scheme, width, height)


def _page_picture(browser: Browser, url: str, name: str, scheme: str, width: int, height: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    page.get_by_role("button", name="Sign in").click()
    if width < 800:
        page.get_by_role("button", name="Conversations").click()
    page.get_by_role("link", name=QUESTION).first.click()
    page.locator("#credits-figure").get_by_text(re.compile(r"\d")).wait_for()
    page.locator(".steps summary").first.click()
    page.locator(".steps[open]").first.wait_for()
    page.mouse.move(width / 2, height / 2)
    page.mouse.wheel(0, -10_000)
    page.wait_for_function("document.querySelector('.steps').getBoundingClientRect().top > 0")
    page.screenshot(path=IMAGES / f"{name}.png")
    page.close()


if __name__ == "__main__":
    terminal_pictures()
    page_pictures(sys.argv[1])
