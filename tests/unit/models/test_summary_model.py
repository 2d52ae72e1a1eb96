"""Which model makes summaries, and whether they are made by calls: the prices decide (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dualtrack.checked_settings import WrongSettings, checked
from dualtrack.memory.summaries import at_its_price
from dualtrack.models.summary_model import SMALL
from dualtrack.profiles import WhenSummarised, all_profiles

HAIKU_4 = "claude-haiku-4-5-20251001"
SONNET = "claude-sonnet-5-5"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, SMALL),
        ({"DUALTRACK_MODEL": SONNET}, SMALL),
        ({"DUALTRACK_MODEL": HAIKU_4}, SMALL),
        ({"DUALTRACK_MODEL": "claude-nobody-9"}, "claude-nobody-9"),
        ({"DUALTRACK_MODEL": SONNET, "DUALTRACK_SUMMARY_MODEL": SONNET}, SONNET),
        ({"DUALTRACK_MODEL": SONNET, "DUALTRACK_PROVIDER": "bedrock"}, SONNET),
    ],
    ids=["the default", "a dear model", "ten times the price", "no list has it", "set", "to be opened first"],
)
def test_the_model_of_summaries(given: dict[str, str], wanted: str) -> None:
    assert checked(given).dualtrack_summary_model == wanted


@pytest.mark.parametrize("prices", ['{"claude-haiku-5-5": 3}', '{"claude-haiku-5-5": {"input": 1}}', "{"])
def test_wrong_prices_are_told_as_theirs(prices: str) -> None:
    with pytest.raises(WrongSettings) as wrong:
        checked({"DUALTRACK_MODEL": SONNET, "DUALTRACK_MODEL_PRICES": prices})
    assert "DUALTRACK_MODEL_PRICES" in str(wrong.value)
    assert "DUALTRACK_SUMMARY_MODEL" not in str(wrong.value)


@pytest.mark.parametrize(
    ("model", "summary_model", "how"),
    [
        (SMALL, SMALL, "in_turn"),
        (SONNET, SMALL, "at_once"),
        (HAIKU_4, SMALL, "at_once"),
        (SONNET, "", "in_turn"),
        (SONNET, HAIKU_4, "in_turn"),
        ("claude-nobody-9", SMALL, "in_turn"),
        (SONNET, "claude-nobody-9", "in_turn"),
    ],
)
def test_how_records_become_short_where_a_profile_does_not_say_it(
    model: str, summary_model: str, how: WhenSummarised
) -> None:
    profile = all_profiles()["assistant"]
    assert at_its_price(profile, model, summary_model).history.summaries == how
    for said in ("in_turn", "at_once"):
        own = replace(profile, history=replace(profile.history, summaries=said))
        assert at_its_price(own, model, summary_model) == own


def test_a_policy_without_a_track_has_neither() -> None:
    sessions = all_profiles()["sessions"]
    assert at_its_price(sessions, SONNET, SMALL) == sessions
