"""The pictures of docs/schedules.md and docs/webhooks.md, beside
``DUALTRACK_WEBHOOK_LOOPBACK=on uv run dualtrack dev --reset``.
"""

from __future__ import annotations

from typing import Final

from tests.clients.browser import chromium
from tests.clients.stack_client import wait_for
from tests.clients.terminal import Terminal
from tests.drivers.pictures import COLUMNS, QUESTION, ROWS, drawn, save, signed_in, webp
from tests.servers.webhook_receiver import receiving

SCHEDULED: Final = {"Morning": "0 8 * * 1-5", "Watch": "* * * * *"}


def take(url: str) -> None:
    """A schedule that has run, in page and terminal, and a webhook that was told of it and of a test."""
    with chromium() as browser, receiving() as receiver:
        desk = signed_in(browser, url, "light", 1280, 800).page
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
                webp(desk, "page-schedule-times")
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
        webp(desk, "page-schedules")
        with Terminal("schedules", "list", columns=COLUMNS, rows=ROWS) as terminal:
            terminal.end()
            listed = [line for line in drawn(terminal.shown) if line.plain.startswith(("sc_", " "))]
            save("terminal-schedules", "uv run dualtrack schedules list", listed)

        phone = signed_in(browser, url, "dark", 390, 844).page
        phone.get_by_role("button", name="Conversations", exact=True).click()
        phone.get_by_role("button", name="Settings").click()
        hooks = phone.locator(".webhooks")
        hooks.get_by_role("button", name="Send a test").click()
        hooks.get_by_text("webhook.test delivered").wait_for(timeout=120_000)
        hooks.scroll_into_view_if_needed()
        webp(phone, "page-webhooks-phone-dark")
