"""Collections on the page: made, filled, asked, a document replaced and deleted; on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.clients.browser import axe_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.page_reader import Reader

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "color_scheme": "dark",
}
HANDBOOK = "# Handbook of the yard\n\n## Varnish\n\nFive coats of varnish protect the planks from water.\n"


def file(name: str, content: str | bytes) -> Any:
    data = content.encode() if isinstance(content, str) else content
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


def test_files_become_documents_on_a_phone(visit: Callable[..., Reader]) -> None:
    """What is read, refused and unchanged is said for each file; a document goes; nothing is wider than the screen."""
    reader = visit(**PHONE)
    reader.sign_in()
    page = reader.page
    page.get_by_role("button", name="Conversations", exact=True).click()
    page.get_by_role("button", name="Documents").click()
    panel = page.locator(".collections")
    panel.get_by_label("Name").fill("Yard")
    panel.get_by_label("What is in it").fill("How we build boats")
    panel.get_by_role("button", name="Make the collection").click()
    panel.get_by_role("heading", name="Yard").wait_for()
    panel.get_by_text("It has no documents yet").wait_for()

    picker = panel.locator("input[type=file]")
    picker.set_input_files(
        [file("handbook.md", HANDBOOK), file("empty.txt", ""), file("photo.png", b"\x89PNG\r\n\x1a\n0000")]
    )
    panel.get_by_text("Done: 1 added, 2 refused").wait_for()
    panel.locator(".collection-documents").get_by_text("Handbook of the yard").wait_for()
    assert panel.get_by_text("empty.txt refused: it is empty").count() == 1
    width = page.locator("#dialog-body").evaluate("body => [body.scrollWidth, body.clientWidth]")
    assert width[0] == width[1]
    page.evaluate(axe_source())
    found = page.evaluate("async () => (await axe.run('#dialog')).violations.map(one => one.id)")
    assert found == []

    picker.set_input_files([file("handbook.md", HANDBOOK)])
    panel.get_by_text("Done: 1 skipped").wait_for()
    picker.set_input_files([file("handbook.md", HANDBOOK.replace("Five", "Six"))])
    panel.get_by_text("Done: 1 replaced").wait_for()

    panel.get_by_role("button", name="Delete Handbook of the yard").click()
    panel.get_by_role("button", name="Delete", exact=True).click()
    panel.get_by_text("It has no documents yet").wait_for()
    panel.get_by_role("button", name="All collections").click()
    panel.get_by_text("0 documents").wait_for()
    panel.get_by_role("button", name="Delete Yard").click()
    panel.get_by_role("button", name="Delete", exact=True).click()
    panel.get_by_text("There are no documents yet").wait_for()
