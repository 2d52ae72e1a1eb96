"""Schedules on the page: made, run, paused, ended; by keyboard."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dualtrack.plugins.schedules.store import schedules_of

from tests.clients.stack_client import Person, wait_for

if TYPE_CHECKING:
    from tests.clients.page_reader import Reader
    from tests.clients.script import Script
    from tests.clients.stack_client import Root


def test_a_schedule_is_made_by_keyboard_runs_is_paused_and_deleted(
    root: Root, reader: Reader, script: Script
) -> None:
    """It has its chat with end and cost, as a link."""
    page = reader.page
    page.get_by_role("button", name="Schedules").click()
    panel = page.get_by_role("dialog", name="Schedules")
    panel.get_by_text("There is none yet.").wait_for()
    panel.get_by_text("Make a schedule").focus()
    page.keyboard.press("Enter")
    asked = script.question("What is new?")
    panel.get_by_label("What to ask").fill(asked)
    panel.get_by_label("Name, if you like").fill("Morning")
    panel.get_by_label("Time zone").fill("Asia/Tokyo")
    next_times = panel.get_by_role("status")
    next_times.get_by_text("Next, in Asia/Tokyo: ").wait_for()
    assert next_times.inner_text().count(", 08:00") == 3
    panel.get_by_label("Time zone").fill("Mars/Olympus")
    next_times.get_by_text("timezone: a name such as Europe/Berlin").wait_for()
    panel.get_by_label("When").select_option("By a cron expression")
    panel.get_by_label("Minute, hour, day, month, weekday").fill("61 8 * * *")
    panel.get_by_label("Time zone").fill("UTC")
    next_times.get_by_text("cron: ").wait_for()
    page.keyboard.press("Enter")
    panel.get_by_role("alert").get_by_text("cron").wait_for()
    panel.get_by_label("When").select_option("Every so often")
    panel.get_by_label("Unit").select_option("hours")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    line = panel.get_by_role("listitem").filter(has_text="Morning")
    line.get_by_text("every hour").wait_for()
    assert line.evaluate("line => line === document.activeElement"), "the focus is on what was made"
    assert line.get_by_text("Next, in your time").count() == 1

    script.says("Nothing is new.")
    run(root, reader)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Schedules").click()
    line.get_by_text("done, 5 credits").wait_for()
    line.get_by_role("link", name="Chat of").click()
    reader.shows("Nothing is new.")
    page.reload()
    page.get_by_role("link", name=f"Scheduled: {asked}").wait_for()

    page.get_by_role("button", name="Schedules").click()
    line.get_by_role("button", name="Pause Morning").click()
    line.get_by_text("Paused.").wait_for()
    line.get_by_role("button", name="Resume Morning").click()
    line.get_by_role("button", name="Pause Morning").wait_for()
    line.get_by_role("button", name="Delete Morning").click()
    assert line.get_by_role("button", name="Delete", exact=True).evaluate(
        "one => one === document.activeElement"
    )
    line.get_by_role("button", name="Delete", exact=True).click()
    panel.get_by_text("There is none yet.").wait_for()


def run(root: Root, reader: Reader) -> None:
    """Let the reader's schedule be due, run it, and wait for the end of its chat."""
    person = Person(root.stack.url, root.stack.token(reader.name))
    schedules = schedules_of(root.stores())
    (made,) = schedules.of(person.id)
    schedules.change(made, replace(made, due=int(time.time()) - 1))
    root.invoke("Schedule", {})
    wait_for(lambda: schedules.of(person.id)[0].runs)
    (ran,) = schedules.of(person.id)
    assert person.finish(ran.runs[0].chat_id)["status"] == "done"
    person.close()
