"""The panel's views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.drivers.page_views import CANCEL, View, Walk, unfold

if TYPE_CHECKING:
    from tests.clients.stack_client import Person

BUTTON: Final = "[data-panel=schedules]"


def prepare(person: Person) -> None:
    """There is a schedule."""
    body = {"message": "What is new?", "name": "Morning", "cron": "0 8 * * *", "timezone": "UTC"}
    made = person.http.post("/v1/schedules", json=body)
    assert made.is_success, made.text


def panel(walk: Walk) -> None:
    """The schedules, over a conversation."""
    walk.talk()
    walk.page.evaluate("button => document.querySelector(button).click()", BUTTON)
    walk.dialog("Schedules")
    walk.page.locator("dialog .boxed-list").first.wait_for()


VIEWS: Final = (
    View("schedules", "talk", BUTTON, "Schedules", "dialog .boxed-list", "schedules/panel", unfold),
    View("schedule deleted", panel, "dialog [aria-label^='Delete ']", shown="dialog .danger", back=CANCEL),
)
