"""A person's actions on the page, and what they see."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Locator, Page, Request

PATIENCE_MS = 120_000
"""Milliseconds after which a test gives up; far more than a working page needs."""

_REFUSALS = ("Failed to load resource",)
"""The browser's own console message for a failed request, which tests cause on purpose."""


@dataclass
class Reader:
    """One person with one page. ``errors``: error messages of the browser's console."""

    page: Page
    name: str
    url: str
    errors: list[str] = field(default_factory=list)
    event_requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._note_request)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSALS):
            self.errors.append(message.text)

    def _note_request(self, request: Request) -> None:
        if request.url.endswith("/events"):
            self.event_requests.append(request)

    def sign_in(self, *, admin: bool = False) -> None:
        """Open the page and sign in under the person's name."""
        self.page.goto(self.url)
        self.page.get_by_label("Name").fill(self.name)
        self.page.get_by_label("As an administrator").set_checked(admin)
        self.page.get_by_role("button", name="Sign in").click()
        self.credits_shown("50")

    def credits_shown(self, figure: str) -> None:
        """Wait until the bar shows this many credits."""
        self.page.locator("#credits-figure").get_by_text(figure, exact=True).wait_for()

    @property
    def field(self) -> Locator:
        """The message field."""
        return self.page.get_by_label("Message", exact=True)

    def send(self, text: str) -> None:
        """Write a message and press Enter."""
        self.field.fill(text)
        self.field.press("Enter")

    def exchange(self, status: str = "", index: int = -1) -> Locator:
        """The newest exchange (or the one at an index), once it has a status."""
        wanted = f'[data-status="{status}"]' if status else ""
        exchanges = self.page.locator("li.exchange")
        exchange = exchanges.last if index == -1 else exchanges.nth(index)
        if wanted:
            exchange.and_(self.page.locator(wanted)).wait_for()
        return exchange

    def ask(self, text: str) -> Locator:
        """Send a message and wait for the end of its chat."""
        before = self.page.locator("li.exchange").count()
        self.send(text)
        self.page.locator("li.exchange").nth(before).wait_for()
        return self.exchange("done")

    def answer(self) -> str:
        """The text of the newest answer as shown now."""
        return self.exchange().locator(".answer").inner_text()

    def shows(self, text: str) -> None:
        """Wait until the newest answer contains a text."""
        self.exchange().locator(".answer", has_text=text).wait_for()

    def sees(self, text: str) -> Locator:
        """Wait until a text is on the page."""
        match = self.page.get_by_text(text).first
        match.wait_for()
        return match

    def follow_up(self, condition: str, argument: Any = None) -> None:
        """Wait for a condition, a JavaScript expression of one argument."""
        self.page.wait_for_function(condition, arg=argument)

    @property
    def location(self) -> str:
        """The part of the address that names the conversation."""
        return re.sub(r"^[^#]*#?", "", self.page.url)

    def leave(self) -> None:
        """Close the page and forget its profile."""
        self.page.context.close()


def accept_word(page: Page) -> None:
    """Enter as Safari reports it where it accepts an input method's word: its code is 229, the composition is over."""
    session = page.context.new_cdp_session(page)
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    session.send("Input.dispatchKeyEvent", {"type": "keyDown", "text": "\r", **key})
    session.send("Input.dispatchKeyEvent", {"type": "keyUp", **key})
    session.detach()
