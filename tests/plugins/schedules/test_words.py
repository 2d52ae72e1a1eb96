"""Schedules in words, and what is entered for one as the API's request."""

from __future__ import annotations

from dualtrack.plugins.schedules.bodies import ScheduleBody

from tests.drivers.page_modules import said

WORDS = "plugins/schedules/schedule_words.js"

CRON = {
    "0 8 * * 1-5": "Monday to Friday at 08:00",
    "5 18 * * *": "every day at 18:05",
    "0 9 * * MON,thu": "on Monday and Thursday at 09:00",
    "0 9 * * 7": "on Sunday at 09:00",
    "0 0 1 * *": "on day 1 of each month at 00:00",
    "0 0 L * *": "on the last day of each month at 00:00",
    "*/15 * * * *": "every 15 minutes",
    "30 * * * *": "every hour at minute 30",
    "*/7 * * * *": "cron */7 * * * *",
    "0 8 * * MON#1": "cron 0 8 * * MON#1",
    "0 8 1 1 *": "cron 0 8 1 1 *",
    "0 8 13 * 5": "cron 0 8 13 * 5",
    "0 8-10 * * *": "cron 0 8-10 * * *",
}
ENTERED = [
    ({"kind": "daily", "time": "08:05", "timezone": "Europe/Berlin"}, "every day at 08:05, Europe/Berlin"),
    ({"kind": "weekdays", "time": "18:00", "timezone": "UTC"}, "Monday to Friday at 18:00, UTC"),
    ({"kind": "rate", "amount": "1", "unit": "day"}, "every day"),
    ({"kind": "rate", "amount": "15", "unit": "minute"}, "every 15 minutes"),
    ({"kind": "once", "date": "2027-01-01T08:00", "timezone": "UTC"}, "once, 2027-01-01 08:00, UTC"),
    ({"kind": "cron", "cron": "0 8 * * MON#1", "timezone": "UTC"}, "cron 0 8 * * MON#1, UTC"),
]
RUNS = [
    ({"status": "missed"}, "missed: "),
    ({"status": "refused", "error": "insufficient_credits"}, "refused: there were too few credits"),
    ({"status": "refused", "error": "new_code"}, "refused: new_code"),
    ({"status": "started"}, "started"),
    ({"status": "started", "chat_status": None, "credits": None}, "its chat was deleted"),
    ({"status": "started", "chat_status": "paused", "credits": 5}, "waits for a decision, 5 credits"),
    ({"status": "started", "chat_status": "running", "credits": 0}, "running"),
    ({"status": "started", "chat_status": "failed", "credits": 1}, "failed, 1 credit"),
]
STATES = [
    ({"status": "active", "error": None}, ""),
    ({"status": "active", "error": "conversation_busy"}, "It waits: its conversation was running"),
    ({"status": "paused", "error": None}, "Paused."),
    (
        {"status": "paused", "error": "insufficient_credits"},
        "Paused after three refusals: there were too few",
    ),
    ({"status": "ended", "error": "unauthorized"}, "Ended: the API key that made it is gone"),
    ({"status": "ended", "error": None}, "Ended: it is not due again"),
]


def test_a_rule_is_said_in_words() -> None:
    rules = [{"cron": cron, "timezone": "UTC"} for cron in CRON]
    assert said(WORDS, "ruleOf", rules) == [f"{words}, UTC" for words in CRON.values()]


def test_what_is_entered_is_what_the_api_takes_and_what_is_shown() -> None:
    times = said(WORDS, "timesOf", [entered for entered, _ in ENTERED])
    for each in times:
        ScheduleBody(message="What is new?", **each)
    assert said(WORDS, "ruleOf", times) == [words for _, words in ENTERED]


def test_ends_and_states_are_said_in_words() -> None:
    for name, cases in (("outcomeOf", RUNS), ("stateOf", STATES)):
        for words, (_, begins) in zip(said(WORDS, name, [case for case, _ in cases]), cases, strict=True):
            assert words.startswith(begins)
            assert "0 credits" not in words
            assert begins or not words
