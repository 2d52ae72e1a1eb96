"""What a person does on the page, and what they see there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Locator, Page, Request

PATIENCE_MS = 45_000
"""After which a test gives up. Nothing that works comes near it."""

_REFUSALS = ("Failed to load resource",)
"""What the browser itself notes of a refused or broken request, which the tests bring about on purpose."""


@dataclass
class Reader:
    """One person with one page. ``errors``: what the browser's console complained of."""

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
        """Wait until the bar shows so many credits."""
        self.page.locator("#credits-figure").get_by_text(figure, exact=True).wait_for()

    @property
    def field(self) -> Locator:
        """The message field."""
        return self.page.get_by_label("Message", exact=True)

    def send(self, text: str) -> None:
        """Write a message and press Enter."""
        self.field.fill(text)
        self.field.press("Enter")

    def exchange(self, status: str = "", place: int = -1) -> Locator:
        """The newest exchange (or the one at a place), once it has a status."""
        wanted = f'[data-status="{status}"]' if status else ""
        found = self.page.locator("li.exchange")
        one = found.last if place == -1 else found.nth(place)
        if wanted:
            one.and_(self.page.locator(wanted)).wait_for()
        return one

    def ask(self, text: str) -> Locator:
        """Send a message and wait for the end of its chat."""
        before = self.page.locator("li.exchange").count()
        self.send(text)
        self.page.locator("li.exchange").nth(before).wait_for()
        return self.exchange("done")

    def answer(self) -> str:
        """The text of the newest answer as it is shown now."""
        return self.exchange().locator(".answer").inner_text()

    def shows(self, text: str) -> None:
        """Wait until the newest answer has come to a text."""
        self.exchange().locator(".answer", has_text=text).wait_for()

    def sees(self, text: str) -> Locator:
        """Wait until a text is on the page."""
        found = self.page.get_by_text(text).first
        found.wait_for()
        return found

    def follow_up(self, condition: str, argument: Any = None) -> None:
        """Wait for a condition, a JavaScript expression of one argument."""
        self.page.wait_for_function(condition, arg=argument)

    @property
    def place(self) -> str:
        """The part of the address that names the conversation."""
        return re.sub(r"^[^#]*#?", "", self.page.url)

    def leave(self) -> None:
        """Close the page and forget its profile."""
        self.page.context.close()
