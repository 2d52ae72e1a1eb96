"""Time follows tokens (CONTRACT 7)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dualtrack.chat.cost_hold import CostSettings, chat_times
from dualtrack.chat_times import CHAT_SECONDS, LONGEST, ChatTimes, call_seconds
from dualtrack.credits.account import HOLD_SECONDS, Account, AccountChange
from dualtrack.memory.summaries import SummarySettings
from dualtrack.models.thinking import Thinking
from dualtrack.profiles import UTILITY, all_profiles


@pytest.mark.parametrize(
    ("tokens", "seconds"),
    [(1, 120), (4_800, 120), (4_801, 121), (10_000, 250), (33_600, 840), (33_601, 840), (10**9, 840)],
)
def test_a_call_has_the_time_of_its_tokens(tokens: int, seconds: int) -> None:
    assert call_seconds(tokens) == seconds


def test_short_chats_have_what_they_had() -> None:
    times = ChatTimes()
    assert (times.call, times.state, times.last_call, times.chat, times.longer) == (120, 150, 240, 900, 0)
    assert times.chat == CHAT_SECONDS


def test_the_longest_chat_has_room_for_two_calls() -> None:
    """A call that is cut off in its last second may be made once more: as the last one, and not a third time."""
    begins = LONGEST.chat - LONGEST.last_call
    assert begins < LONGEST.call
    assert LONGEST.call + LONGEST.call > LONGEST.chat


def test_thinking_has_room_on_top() -> None:
    profile = replace(all_profiles()["assistant"], max_tokens=4_000)
    room = SummarySettings(thinking=Thinking(room=8_000))
    assert chat_times(profile, CostSettings("claude-haiku-5-5", room)).call == 313, "with notes"
    assert chat_times(profile, CostSettings("claude-haiku-4-5", room)).call == 120
    assert (
        chat_times(replace(profile, model="claude-haiku-4-5"), CostSettings("claude-haiku-5-5", room)).call
        == 120
    )
    assert chat_times(UTILITY, CostSettings("claude-haiku-5-5", room)).call == 120


def test_a_hold_outlives_a_long_chat() -> None:
    """Ten minutes behind its time, as that of any chat; after a pause anew."""
    now, longer = 1_000_000.0, LONGEST.longer
    held = Account("ann").hold("ch_1", 5, now, None, longer)
    assert isinstance(held, AccountChange)
    assert not held.account.holds["ch_1"].is_dead(now + LONGEST.chat + 599)
    assert held.account.holds["ch_1"].is_dead(now + HOLD_SECONDS + longer)
    later = now + 10_000_000
    paused = held.account.pause("ch_1", later, now).account
    resumed = paused.resume("ch_1", (), (), later, 0, longer)
    assert isinstance(resumed, AccountChange)
    assert not resumed.account.holds["ch_1"].is_dead(later + LONGEST.chat + 599)
