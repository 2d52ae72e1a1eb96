"""Webhooks on the page: made, told, disabled, tested, ended; on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.clients.browser import axe_source
from tests.servers.webhook_receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.page_reader import Reader
    from tests.clients.stack_client import Root

PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "color_scheme": "dark",
}


def test_a_webhook_is_made_tested_and_enabled_again_on_a_phone(
    root: Root, visit: Callable[..., Reader]
) -> None:
    """Its secret is shown once; a test that arrives enables a disabled one; nothing is wider than the screen."""
    reader = visit(**PHONE)
    reader.sign_in()
    page = reader.page
    page.get_by_role("button", name="Conversations", exact=True).click()
    page.get_by_role("button", name="Webhooks").click()
    panel = page.locator(".webhooks")
    with receiving() as receiver:
        gone = f"{receiver.url}/410/{'w' * 60}"
        panel.get_by_text("Make a webhook").click()
        panel.get_by_label("Address of your program").fill("https://10.0.0.1/")
        panel.get_by_role("button", name="Make the webhook").click()
        panel.get_by_text("its host is no public address").wait_for()
        panel.get_by_label("Address of your program").fill(gone)
        panel.get_by_role("button", name="Make the webhook").click()
        assert panel.get_by_label("Copy it now").input_value().startswith("whsec_")

        panel.get_by_role("button", name="Send a test").click()
        panel.locator(".runs").wait_for()
        root.invoke("Deliver", {})
        panel.get_by_text("410 in").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Webhooks").click()
        panel.get_by_text("Disabled since").wait_for()
        assert panel.get_by_label("Copy it now").count() == 0, "it is shown once"
        width = page.locator("#dialog-body").evaluate("body => [body.scrollWidth, body.clientWidth]")
        assert width[0] == width[1]
        page.evaluate(axe_source())
        found = page.evaluate("async () => (await axe.run('#dialog')).violations.map(one => one.id)")
        assert found == []

        receiver.answers["/410/" + "w" * 60] = 204
        panel.get_by_role("button", name="Send a test").click()
        panel.locator(".runs").wait_for()
        root.invoke("Deliver", {})
        panel.get_by_text("Disabled since").wait_for(state="detached")
    panel.get_by_role("button", name="New secret").click()
    panel.get_by_role("button", name="Make a new secret").click()
    assert panel.get_by_label("Copy it now").input_value().startswith("whsec_")
    panel.get_by_role("button", name="Delete").click()
    panel.get_by_role("button", name="Delete", exact=True).click()
    panel.locator(".boxed-list").wait_for(state="detached")
