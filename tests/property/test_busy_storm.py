"""A model that is busy for minutes (short form; the long one is tests.bench.busy_model)."""

from __future__ import annotations

from tests.drivers.busy_storm import busy_storm
from tests.long_forms import LONG

CHATS = 100 if LONG else 12


def test_no_chat_fails_while_it_has_time() -> None:
    """Five minutes of 529: release 1 fails every chat, a workflow that waits fails none."""
    storm = busy_storm(CHATS, 5, waits=True)
    assert storm.wrong == ()
    assert storm.ended == {"done": CHATS}
    assert storm.stopped == {"complete": CHATS}
    assert storm.charged == 7 * CHATS
    before = busy_storm(CHATS, 5, waits=False)
    assert before.wrong == ()
    assert before.ended == {"failed": CHATS}
    assert before.charged == 0


def test_without_an_outage_states_and_calls_are_those_of_release_1() -> None:
    now, before = (busy_storm(3, 0, waits=waits) for waits in (True, False))
    assert (now.calls, now.states, now.paid_seconds) == (before.calls, before.states, before.paid_seconds)
    assert (now.calls, now.states) == (2 * 3, 7 * 3)


def test_an_outage_beyond_the_last_call_fails_every_chat_without_charge() -> None:
    storm = busy_storm(CHATS // 4, 16, waits=True)
    assert storm.wrong == ()
    assert storm.ended == {"failed": CHATS // 4}
    assert storm.charged == 0
    assert storm.seconds < 15 * 60
