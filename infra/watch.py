"""Who is told of alarms, and of what spending: settings of a stage (docs/aws/settings.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_TOPIC: Final = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True, slots=True)
class Watch:
    """``email``: a subscriber of the stage's own topic. ``topic``: the ARN of another topic that every alarm also
    notifies; its policy must let cloudwatch.amazonaws.com publish. ``daily_dollars``: what models may cost in a day
    before an alarm; 0 for no alarm. The texts are empty for none.
    """

    email: str = ""
    topic: str = ""
    daily_dollars: float = 0.0


NOBODY: Final = Watch()


def watch_from(environment: Mapping[str, str]) -> Watch:
    """``ALARM_EMAIL``, ``ALARM_TOPIC_ARN``, ``ALARM_DAILY_DOLLARS``. Raises ValueError for values that AWS would
    refuse during deployment."""
    address, topic = environment.get("ALARM_EMAIL", ""), environment.get("ALARM_TOPIC_ARN", "")
    if address and not _ADDRESS.fullmatch(address):
        raise ValueError(f"ALARM_EMAIL must be one address: {address}")
    if topic and not _TOPIC.fullmatch(topic):
        raise ValueError(f"ALARM_TOPIC_ARN must be the ARN of a standard SNS topic: {topic}")
    return Watch(address, topic, _dollars(environment.get("ALARM_DAILY_DOLLARS", "")))


def _dollars(text: str) -> float:
    try:
        dollars = float(text or 0)
    except ValueError:
        dollars = -1.0
    if not 0 <= dollars < 1e6:
        raise ValueError(f"ALARM_DAILY_DOLLARS must be a number of dollars from 0 to a million: {text}")
    return dollars
