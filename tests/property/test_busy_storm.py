"""A model that is busy for minutes (short form; the long one is bench.busy_model)."""

from __future__ import annotations

from tests.drivers.busy_storm import busy_storm
from tests.long_forms import LONG

CHATS = 100 if LONG else 12


def test_no_chat_fails_while_it_has_time() -> None:
    """Five minutes of 529."""
    storm = busy_storm(CHATS, 5)
    assert storm.wrong == ()
    assert storm.ended == {"done": CHATS}
    assert storm.stopped == {"complete": CHATS}
    assert storm.charged == 7 * CHATS


def test_waiting_costs_nothing_without_an_outage() -> None:
    storm = busy_storm(3, 0)
    assert (storm.calls, storm.states) == (2 * 3, 7 * 3)


def test_an_outage_beyond_the_last_call_fails_every_chat_without_charge() -> None:
    storm = busy_storm(CHATS // 4, 16)
    assert storm.wrong == ()
    assert storm.ended == {"failed": CHATS // 4}
    assert storm.charged == 0
    assert storm.seconds < 15 * 60
