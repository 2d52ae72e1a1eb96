"""The pictures of README and docs/terminal.md, and most of docs/page.md, of a real run.

Beside ``uv run dualtrack dev --reset``:
``uv run --with pyte --with pillow python -m tests.drivers.pictures http://127.0.0.1:8000``.

Those of docs/approvals.md, beside the local stack of examples/support-desk: the same with ``approvals`` behind it.
Those of a plug-in: with its name (``tests/plugins/NAME/pictures.py``).
"""

from __future__ import annotations

import io
import itertools
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.clients.browser import chromium
from tests.clients.page_reader import Reader
from tests.clients.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
QUESTION: Final = "How do I set up OAuth for Twitter ads?"
OTHER: Final = "Which OAuth version does the X Ads API use?"
FOLLOW_UP: Final = "Show me the full code from earlier"
SIZES: Final = {
    "page-light": ("light", 1280, 800),
    "page-dark": ("dark", 1280, 800),
    "page-phone": ("light", 390, 780),
}
ORDER: Final = "place_order number=1004 article=bulb amount=4.5"
ORDERS: Final = {"page-approval": ("light", 1280, 800), "page-approval-phone-dark": ("dark", 390, 844)}
THEME: Final = TerminalTheme(
    (27, 31, 36),
    (222, 226, 230),
    [(27, 31, 36), (240, 113, 120), (126, 205, 140), (229, 192, 123),
     (110, 170, 240), (198, 146, 233), (94, 200, 205), (222, 226, 230)],
)  # fmt: skip
COLUMNS: Final = 120
ROWS: Final = 400
_PROMPT: Final = "\x1b[?2004h"
"""What the terminal is sent when it may be typed at: bracketed paste begins."""
_NAMES: Final = {"brown": "yellow", "default": None}
"""What pyte calls colours otherwise than rich."""


def terminal_pictures() -> None:
    """A first chat, its follow-up, a conversation in the terminal, and a chat that is followed afterwards."""
    with Terminal("chat", QUESTION, columns=COLUMNS, rows=ROWS) as terminal:
        terminal.end()
        first = drawn(terminal.shown)
    save("terminal-chat", f"uv run dualtrack chat “{QUESTION}”", shortened(first, 15, 8))
    with Terminal("chat", "--last", columns=COLUMNS, rows=ROWS) as terminal:
        for line in ("/help\r", f"{FOLLOW_UP}\r", "/cost\r", "\x04"):
            terminal.until(_PROMPT)
            terminal.type(line)
        terminal.end()
        talk = drawn(terminal.shown)
    save("terminal-conversation", "uv run dualtrack chat --last", shortened(talk, 30, 24))
    with Terminal("watch", columns=COLUMNS, rows=ROWS) as terminal:
        terminal.end()
        save("terminal-watch", "uv run dualtrack watch", shortened(drawn(terminal.shown), 12, 8))


def drawn(shown: str) -> list[Text]:
    """The lines of a terminal to which this was sent, with their colours."""
    import pyte  # type: ignore[import-not-found]  # in no dependency group: `uv run --with pyte`

    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.Stream(screen).feed(shown)
    lines = [Text.assemble(*_cells(screen, row)) for row in range(ROWS)]
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
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in (*lines, Text()):
        console.print(line, soft_wrap=True)
    console.save_svg(str(IMAGES / f"{name}.svg"), title=title, theme=THEME, unique_id=name)


def page_pictures(url: str) -> None:
    """The latest conversation as the page shows it, in two sizes and two themes."""
    with chromium() as browser:
        for name, (scheme, width, height) in SIZES.items():
            _page_picture(browser, url, name, scheme, width, height)


def branch_pictures(url: str) -> None:
    """A question that is edited, an answer that is regenerated, the branches of a question, and a branch."""
    with chromium() as browser:
        desk = signed_in(browser, url, "light", 1280, 800)
        desk.ask(QUESTION)
        address = desk.page.url
        desk.page.get_by_role("button", name="Edit question 1", exact=True).click()
        editor = desk.page.get_by_role("form", name="Edit question 1")
        editor.get_by_role("textbox").fill(OTHER)
        webp(desk.page, "page-edit")
        editor.get_by_role("textbox").press("Enter")
        desk.page.locator('[data-branches="1"]', has_text="2/2").wait_for()
        desk.exchange("done")

        dark = signed_in(browser, url, "dark", 1280, 800, address)
        dark.page.get_by_role("button", name="Regenerate the answer to question 1").click()
        dark.page.locator('[data-branches="1"]', has_text="3/3").wait_for()
        dark.exchange("done")
        webp(dark.page, "page-regenerate-dark")
        dark.page.locator('[data-branches="1"]').click()
        dark.page.get_by_role("dialog").get_by_text(OTHER).wait_for()
        webp(dark.page, "page-branches")

        phone = signed_in(browser, url, "light", 390, 780, address)
        phone.page.get_by_role("button", name="Branch from here, after question 1").click()
        phone.page.locator("#branched-from", has_text="Branched from").wait_for()
        phone.ask(FOLLOW_UP)
        webp(phone.page, "page-branch-phone")


def detail_pictures(url: str) -> None:
    """The receipt of an answer, dollars and credits, the account, the settings in the dark, the list on a phone."""
    with chromium() as browser:
        desk = signed_in(browser, url, "light", 1280, 800)
        for question in (QUESTION, FOLLOW_UP, OTHER, FOLLOW_UP):
            desk.ask(question)
        address = desk.page.url
        desk.page.get_by_role("button", name="Receipt").first.click()
        desk.page.get_by_text("What was done, in order").wait_for()
        webp(desk.page, "page-receipt")
        desk.page.keyboard.press("Escape")
        desk.page.get_by_role("button", name="Memory").click()
        desk.page.get_by_text("Dollars and credits by question").wait_for()
        webp(desk.page, "page-usage")
        desk.page.locator("#credits").click()
        desk.page.get_by_text("Chats of the last 30 days").wait_for()
        webp(desk.page, "page-credits")
        dark = signed_in(browser, url, "dark", 1280, 800, address).page
        dark.get_by_role("button", name="Settings").click()
        dark.locator(".tool-table").first.wait_for()
        webp(dark, "page-settings-dark")
        phone = signed_in(browser, url, "light", 390, 844).page
        phone.get_by_role("button", name="Conversations", exact=True).click()
        phone.get_by_role("link", name=QUESTION).first.wait_for()
        webp(phone, "page-list-phone")


def approval_pictures(url: str) -> None:
    """An order of the support desk that waits for its customer."""
    with chromium() as browser:
        for name, (scheme, width, height) in ORDERS.items():
            page = signed_in(browser, url, scheme, width, height).page
            page.get_by_role("radio", name="Support", exact=True).check()
            page.get_by_label("Message", exact=True).fill(ORDER)
            page.get_by_role("button", name="Send", exact=True).click()
            page.get_by_role("button", name="Approve: place_order").wait_for()
            webp(page, name)


def signed_in(browser: Browser, url: str, scheme: Any, width: int, height: int, address: str = "") -> Reader:
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    reader = Reader(page, "", url)
    page.goto(address or url)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#credits-figure").get_by_text(re.compile(r"\d")).wait_for()
    if address:
        reader.exchange("done")
    return reader


def webp(page: Page, name: str) -> None:
    from PIL import Image  # in no dependency group: `uv run --with pillow`

    Image.open(io.BytesIO(page.screenshot())).save(IMAGES / f"{name}.webp", quality=85)


def _page_picture(browser: Browser, url: str, name: str, scheme: str, width: int, height: int) -> None:
    page = signed_in(browser, url, scheme, width, height).page
    if width < 800:
        page.get_by_role("button", name="Conversations").click()
    page.get_by_role("link", name=QUESTION).first.click()
    page.locator(".steps > summary").first.click()
    page.locator(".steps[open]").first.wait_for()
    page.mouse.move(width / 2, height / 2)
    page.mouse.wheel(0, -10_000)
    page.wait_for_function("document.querySelector('.steps').getBoundingClientRect().top > 0")
    page.screenshot(path=IMAGES / f"{name}.png")
    page.close()


if __name__ == "__main__":
    if sys.argv[2:] == ["approvals"]:
        approval_pictures(sys.argv[1])
    elif sys.argv[2:]:
        import_module(f"tests.plugins.{sys.argv[2]}.pictures").take(sys.argv[1])
    else:
        terminal_pictures()
        page_pictures(sys.argv[1])
        branch_pictures(sys.argv[1])
        detail_pictures(sys.argv[1])
