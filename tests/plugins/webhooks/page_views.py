"""The panel's views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.drivers.page_views import CANCEL, NAMED, View, Walk, unfold

if TYPE_CHECKING:
    from tests.clients.stack_client import Person

BUTTON: Final = "[data-panel=webhooks]"


def prepare(person: Person) -> None:
    """There is a webhook."""
    hook = {"url": "https://example.com/hook", "events": ["chat.done"], "profiles": []}
    made = person.http.post("/v1/webhooks", json=hook)
    assert made.is_success, made.text


def panel(walk: Walk) -> None:
    """The webhooks, over a conversation."""
    walk.talk()
    walk.page.evaluate("button => document.querySelector(button).click()", BUTTON)
    walk.dialog("Webhooks")
    walk.page.locator("dialog .boxed-list").first.wait_for()


VIEWS: Final = (
    View("webhooks", "talk", BUTTON, "Webhooks", "dialog .boxed-list", "webhooks/panel", unfold),
    View(
        "new secret of a webhook",
        panel,
        NAMED.format("New secret "),
        shown="dialog .danger",
        back=CANCEL,
    ),
)
