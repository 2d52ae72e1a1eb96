"""The pictures of docs/schedules.md, beside ``uv run dualtrack dev --reset``."""

from __future__ import annotations

from typing import Final

from tests.clients.browser import chromium
from tests.clients.stack_client import wait_for
from tests.clients.terminal import Terminal
from tests.drivers.pictures import COLUMNS, QUESTION, ROWS, drawn, save, signed_in, webp

SCHEDULED: Final = {"Morning": "0 8 * * 1-5", "Watch": "* * * * *"}


def take(url: str) -> None:
    """A schedule that has run, in page and terminal."""
    with chromium() as browser:
        desk = signed_in(browser, url, "light", 1280, 800).page
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

        def ran() -> bool:
            desk.keyboard.press("Escape")
            desk.get_by_role("button", name="Schedules").click()
            panel.locator(".boxed-list").wait_for()
            return bool(panel.get_by_text("done, ").count())

        wait_for(ran, 300)
        panel.get_by_role("button", name="Pause Watch").click()
        panel.get_by_role("button", name="Resume Watch").wait_for()
        wait_for(ran, 300)  # the latest run, which may have begun meanwhile
        webp(desk, "page-schedules")
        with Terminal("schedules", "list", columns=COLUMNS, rows=ROWS) as terminal:
            terminal.end()
            listed = [line for line in drawn(terminal.shown) if line.plain.startswith(("sc_", " "))]
            save("terminal-schedules", "uv run dualtrack schedules list", listed)
