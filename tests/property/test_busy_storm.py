"""A model that is busy for minutes, in its short form; the long one is tests.bench.busy_model."""

from __future__ import annotations

from tests.drivers.busy_storm import busy_storm
from tests.long_forms import LONG

CHATS = 100 if LONG else 12


def test_no_chat_fails_while_it_has_time() -> None:
    """Five minutes of 529: release 1 fails every chat, and a workflow that waits none."""
    found = busy_storm(CHATS, 5, waits=True)
    assert found.wrong == ()
    assert found.ended == {"done": CHATS}
    assert found.stopped == {"complete": CHATS}
    assert found.charged == 7 * CHATS
    before = busy_storm(CHATS, 5, waits=False)
    assert before.wrong == ()
    assert before.ended == {"failed": CHATS}
    assert before.charged == 0


def test_a_chat_that_does_not_wait_has_the_states_and_calls_that_it_had() -> None:
    now, before = (busy_storm(3, 0, waits=waits) for waits in (True, False))
    assert (now.calls, now.states, now.paid_seconds) == (before.calls, before.states, before.paid_seconds)
    assert (now.calls, now.states) == (2 * 3, 7 * 3)


def test_one_that_is_still_away_at_the_last_call_fails_every_chat_at_no_price() -> None:
    found = busy_storm(CHATS // 4, 16, waits=True)
    assert found.wrong == ()
    assert found.ended == {"failed": CHATS // 4}
    assert found.charged == 0
    assert found.seconds < 15 * 60
