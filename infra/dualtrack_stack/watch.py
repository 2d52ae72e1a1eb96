"""Who is told of alarms, and of what spending: settings of a stage (docs/aws/settings.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dualtrack.settings import Settings


@dataclass(frozen=True, slots=True)
class Watch:
    """``email``: a subscriber of the stage's own topic. ``topic``: the ARN of another topic that every alarm also
    notifies; its policy must let cloudwatch.amazonaws.com publish. ``daily_dollars``: what models may cost in a day
    before an alarm; ``key_percent``: the share of a cap of an API key from which on there is one; 0 for no alarm. The
    texts are empty for none.
    """

    email: str = ""
    topic: str = ""
    daily_dollars: float = 0.0
    key_percent: int = 0


NOBODY: Final = Watch()


def watch_from(settings: Settings) -> Watch:
    """``ALARM_EMAIL``, ``ALARM_TOPIC_ARN``, ``ALARM_DAILY_DOLLARS``, ``ALARM_KEY_PERCENT``."""
    return Watch(
        settings.alarm_email,
        settings.alarm_topic_arn,
        settings.alarm_daily_dollars,
        settings.alarm_key_percent,
    )
