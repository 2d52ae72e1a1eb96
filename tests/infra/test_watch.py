"""Who is told of alarms: what AWS would refuse is refused before anything is deployed."""

from __future__ import annotations

import pytest
from dualtrack.checked_settings import checked
from dualtrack_stack.watch import NOBODY, Watch, watch_from

TOPIC = "arn:aws:sns:eu-central-1:123456789012:on-call"


def test_without_settings_nobody_is_told() -> None:
    assert watch_from(checked({})) == NOBODY


def test_what_is_set_is_taken_unchanged() -> None:
    values = {"ALARM_EMAIL": "ops@example.org", "ALARM_TOPIC_ARN": TOPIC, "ALARM_DAILY_DOLLARS": "12.5"}
    values |= {"ALARM_KEY_PERCENT": "80"}
    assert watch_from(checked(values)) == Watch("ops@example.org", TOPIC, 12.5, 80)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(
            ("ALARM_EMAIL", text)
            for text in ("ops", "ops@example", "a@b.org, c@d.org", "a@b@example.org", " ")
        ),
        *(
            ("ALARM_TOPIC_ARN", text)
            for text in ("on-call", f"{TOPIC}.fifo", TOPIC.replace("sns", "sqs"), " ")
        ),
        *(("ALARM_DAILY_DOLLARS", text) for text in ("-1", "nan", "inf", "1e9", "ten", "$5")),
        *(("ALARM_KEY_PERCENT", text) for text in ("-1", "101", "80.5", "80%", "nan")),
    ],
)
def test_what_aws_would_refuse_is_refused(name: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=name):
        watch_from(checked({name: wrong}))
