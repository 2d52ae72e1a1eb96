"""Validation of the address for alarms."""

from __future__ import annotations

import pytest

from infra.app import alarm_email_from


def test_without_the_setting_nobody_is_subscribed() -> None:
    assert alarm_email_from({}) == ""


def test_one_address_is_taken_unchanged() -> None:
    assert alarm_email_from({"ALARM_EMAIL": "ops@example.org"}) == "ops@example.org"


@pytest.mark.parametrize(
    "wrong", ["ops", "ops@example", "a@example.org, b@example.org", "a@b@example.org", " "]
)
def test_what_sns_would_refuse_is_refused_before_anything_is_deployed(wrong: str) -> None:
    with pytest.raises(ValueError, match="ALARM_EMAIL"):
        alarm_email_from({"ALARM_EMAIL": wrong})
