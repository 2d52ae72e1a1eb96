"""The picture of docs/webhooks.md, beside ``DUALTRACK_WEBHOOK_LOOPBACK=on uv run dualtrack dev --reset``."""

from __future__ import annotations

from tests.clients.browser import chromium
from tests.drivers.pictures import signed_in, webp
from tests.servers.webhook_receiver import receiving


def take(url: str) -> None:
    """A webhook that was told of a test, on a phone."""
    with chromium() as browser, receiving() as receiver:
        phone = signed_in(browser, url, "dark", 390, 844).page
        phone.get_by_role("button", name="Conversations", exact=True).click()
        phone.get_by_role("button", name="Webhooks").click()
        hooks = phone.get_by_role("dialog", name="Webhooks")
        hooks.get_by_text("Make a webhook").click()
        hooks.get_by_label("Address of your program").fill(f"{receiver.url}/ok")
        hooks.get_by_role("button", name="Make the webhook").click()
        hooks.get_by_label("Copy it now").wait_for()
        phone.keyboard.press("Escape")
        phone.get_by_role("button", name="Webhooks").click()
        hooks.get_by_role("button", name="Send a test").click()
        hooks.get_by_text("webhook.test delivered").wait_for(timeout=120_000)
        webp(phone, "page-webhooks-phone-dark")
