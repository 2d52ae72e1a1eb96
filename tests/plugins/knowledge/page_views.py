"""The panel's views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.drivers.page_views import CANCEL, NAMED, View, Walk, unfold

if TYPE_CHECKING:
    from tests.clients.stack_client import Person

BUTTON: Final = "[data-panel=knowledge]"
IN_DIALOG: Final = f"dialog {NAMED}"


def prepare(person: Person) -> None:
    """There is a collection."""
    made = person.http.post("/v1/collections", json={"name": "Boat yard", "description": "How we build"})
    assert made.is_success, made.text


def panel(walk: Walk) -> None:
    """The collections, over a conversation."""
    walk.talk()
    walk.page.evaluate("button => document.querySelector(button).click()", BUTTON)
    walk.dialog("Documents")
    walk.page.locator("dialog .boxed-list").first.wait_for()


VIEWS: Final = (
    View("collections", "talk", BUTTON, "Documents", "dialog .boxed-list", "knowledge/panel", unfold),
    View("documents of a collection", panel, IN_DIALOG.format("Documents "), shown="dialog .drop-here"),
    View("end of a collection", panel, IN_DIALOG.format("Delete "), shown="dialog .danger", back=CANCEL),
)
