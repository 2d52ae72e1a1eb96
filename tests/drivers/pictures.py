"""The pictures of README and docs/terminal.md, and most of docs/page.md, of a real run.

Beside ``uv run dualtrack dev --reset``:
``uv run --with pyte --with pillow python -m tests.drivers.pictures http://127.0.0.1:8000``.

Those of docs/approvals.md, beside the local stack of examples/support-desk: the same with ``approvals`` behind it.
Those of docs/schedules.md and docs/webhooks.md, beside ``DUALTRACK_WEBHOOK_LOOPBACK=on uv run dualtrack dev --reset``:
with ``schedules``.
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
from tests.clients.page_reader import Reader
from tests.clients.stack_client import wait_for
from tests.clients.terminal import Terminal
from tests.servers.webhook_receiver import receiving

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
SCHEDULED: Final = {"Morning": "0 8 * * 1-5", "Watch": "* * * * *"}
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
    with Terminal("watch", columns=_COLUMNS, rows=_ROWS) as terminal:
        terminal.end()
        save("terminal-watch", "uv run dualtrack watch", shortened(drawn(terminal.shown), 12, 8))


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


def branch_pictures(url: str) -> None:
    """A question that is edited, an answer that is regenerated, the branches of a question, and a branch."""
    with chromium() as browser:
        desk = _reader(browser, url, "light", 1280, 800)
        desk.ask(QUESTION)
        address = desk.page.url
        desk.page.get_by_role("button", name="Edit question 1", exact=True).click()
        editor = desk.page.get_by_role("form", name="Edit question 1")
        editor.get_by_role("textbox").fill(OTHER)
        _webp(desk.page, "page-edit")
        editor.get_by_role("textbox").press("Enter")
        desk.page.locator('[data-branches="1"]', has_text="2/2").wait_for()
        desk.exchange("done")

        dark = _reader(browser, url, "dark", 1280, 800, address)
        dark.page.get_by_role("button", name="Regenerate the answer to question 1").click()
        dark.page.locator('[data-branches="1"]', has_text="3/3").wait_for()
        dark.exchange("done")
        _webp(dark.page, "page-regenerate-dark")
        dark.page.locator('[data-branches="1"]').click()
        dark.page.get_by_role("dialog").get_by_text(OTHER).wait_for()
        _webp(dark.page, "page-branches")

        phone = _reader(browser, url, "light", 390, 780, address)
        phone.page.get_by_role("button", name="Branch from here, after question 1").click()
        phone.page.locator("#branched-from", has_text="Branched from").wait_for()
        phone.ask(FOLLOW_UP)
        _webp(phone.page, "page-branch-phone")


def detail_pictures(url: str) -> None:
    """The receipt of an answer, dollars and credits, the account, the settings in the dark, the list on a phone."""
    with chromium() as browser:
        desk = _reader(browser, url, "light", 1280, 800)
        for question in (QUESTION, FOLLOW_UP, OTHER, FOLLOW_UP):
            desk.ask(question)
        address = desk.page.url
        desk.page.get_by_role("button", name="Receipt").first.click()
        desk.page.get_by_text("What was done, in order").wait_for()
        _webp(desk.page, "page-receipt")
        desk.page.keyboard.press("Escape")
        desk.page.get_by_role("button", name="Memory").click()
        desk.page.get_by_text("Dollars and credits by question").wait_for()
        _webp(desk.page, "page-usage")
        desk.page.locator("#credits").click()
        desk.page.get_by_text("Chats of the last 30 days").wait_for()
        _webp(desk.page, "page-credits")
        dark = _reader(browser, url, "dark", 1280, 800, address).page
        dark.get_by_role("button", name="Settings").click()
        dark.locator(".tool-table").first.wait_for()
        _webp(dark, "page-settings-dark")
        phone = _reader(browser, url, "light", 390, 844).page
        phone.get_by_role("button", name="Conversations", exact=True).click()
        phone.get_by_role("link", name=QUESTION).first.wait_for()
        _webp(phone, "page-list-phone")


def approval_pictures(url: str) -> None:
    """An order of the support desk that waits for its customer."""
    with chromium() as browser:
        for name, (scheme, width, height) in ORDERS.items():
            page = _reader(browser, url, scheme, width, height).page
            page.get_by_role("radio", name="Support", exact=True).check()
            page.get_by_label("Message", exact=True).fill(ORDER)
            page.get_by_role("button", name="Send", exact=True).click()
            page.get_by_role("button", name="Approve: place_order").wait_for()
            _webp(page, name)


def schedule_pictures(url: str) -> None:
    """A schedule that has run, in page and terminal, and a webhook that was told of it and of a test."""
    with chromium() as browser, receiving() as receiver:
        desk = _reader(browser, url, "light", 1280, 800).page
        desk.get_by_role("button", name="Settings").click()
        hooks = desk.locator(".webhooks")
        hooks.get_by_text("Make a webhook").click()
        hooks.get_by_label("Address of your program").fill(f"{receiver.url}/ok")
        hooks.get_by_role("button", name="Make the webhook").click()
        hooks.get_by_label("Copy it now").wait_for()
        desk.keyboard.press("Escape")
        desk.get_by_role("button", name="Schedules").click()
        panel = desk.get_by_role("dialog", name="Schedules")
        for name, cron in SCHEDULED.items():
            panel.get_by_text("Make a schedule").click()
            panel.get_by_label("What to ask").fill(QUESTION)
            panel.get_by_label("Name, if you like").fill(name)
            panel.get_by_label("When").select_option("By a cron expression")
            panel.get_by_label("Minute, hour, day, month, weekday").fill(cron)
            panel.get_by_label("Time zone").fill("Europe/Berlin")
            panel.get_by_role("status").get_by_text("Next, in Europe/Berlin").wait_for()
            panel.get_by_role("button", name="Make the schedule").scroll_into_view_if_needed()
            if name == "Morning":
                _webp(desk, "page-schedule-times")
            panel.get_by_role("button", name="Make the schedule").click()
            panel.locator("li").filter(has_text=name).wait_for()
        wait_for(lambda: receiver.of("/ok"), 300)  # of the first run
        desk.keyboard.press("Escape")
        desk.get_by_role("button", name="Schedules").click()
        panel.get_by_role("button", name="Pause Watch").click()
        panel.get_by_role("button", name="Resume Watch").wait_for()
        runs = 1 + panel.get_by_text("All 2 runs").count()
        wait_for(lambda: len(receiver.of("/ok")) >= runs, 300)
        desk.keyboard.press("Escape")
        desk.get_by_role("button", name="Schedules").click()
        panel.get_by_text("done, ").wait_for()
        _webp(desk, "page-schedules")
        with Terminal("schedules", "list", columns=_COLUMNS, rows=_ROWS) as terminal:
            terminal.end()
            listed = [line for line in drawn(terminal.shown) if line.plain.startswith(("sc_", " "))]
            save("terminal-schedules", "uv run dualtrack schedules list", listed)

        phone = _reader(browser, url, "dark", 390, 844).page
        phone.get_by_role("button", name="Conversations", exact=True).click()
        phone.get_by_role("button", name="Settings").click()
        hooks = phone.locator(".webhooks")
        hooks.get_by_role("button", name="Send a test").click()
        hooks.get_by_text("webhook.test delivered").wait_for(timeout=120_000)
        hooks.scroll_into_view_if_needed()
        _webp(phone, "page-webhooks-phone-dark")


def _reader(browser: Browser, url: str, scheme: Any, width: int, height: int, address: str = "") -> Reader:
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


def _webp(page: Page, name: str) -> None:
    from PIL import Image  # in no dependency group: `uv run --with pillow`

    Image.open(io.BytesIO(page.screenshot())).save(IMAGES / f"{name}.webp", quality=85)


def _page_picture(browser: Browser, url: str, name: str, scheme: str, width: int, height: int) -> None:
    page = _reader(browser, url, scheme, width, height).page
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
    elif sys.argv[2:] == ["schedules"]:
        schedule_pictures(sys.argv[1])
    else:
        terminal_pictures()
        page_pictures(sys.argv[1])
        branch_pictures(sys.argv[1])
        detail_pictures(sys.argv[1])
