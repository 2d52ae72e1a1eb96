"""What functions count, with which dimensions (docs/explain.md). Dashboard and alarms ask for the same.

    service, stage            what a function counts of itself; Powertools writes the first
    service, stage, part      searches that went without something: one line with the part, one without
    service=chat, stage, end  how chats end, whichever function ends them

A metric costs $0.30 for each set of dimensions in a month in which it is sent, so the sets of values are closed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACE: Final = "dualtrack"

DEGRADED: Final = "DegradedSearches"
PARTS: Final = ("understand", "choose", "meaning", "rerank", "context7")
"""What a search may have to do without: the model's reading of the question, its choice of the library, embeddings,
the model's order of the sections, and the documentation itself."""

CHAT_ENDS: Final = "ChatEnds"
CHATS: Final = "chat"
"""The service of what is counted of chats, whichever function counts it."""
ENDS: Final = (
    "max_turns", "insufficient_credits", "max_tokens", "context_window", "timeout", "max_cost", "refusal",
    "failed_internal", "failed_unavailable", "failed_timeout",
)  # fmt: skip
"""All but `complete` and `cancelled`: an answer with another stop, or an error's code."""


def stage() -> str:
    """The stage as the function's environment has it."""
    return os.environ.get("STAGE") or "none"


def stage_metrics() -> Metrics:
    """The function's metrics, all of them with its stage."""
    metrics = Metrics()
    metrics.set_default_dimensions(stage=stage())
    return metrics


def count_degraded(parts: Iterable[str]) -> None:
    """One search that went without these of `PARTS`: a line for each, and one for all of them together."""
    for part in (told := tuple(parts)):
        count(DEGRADED, part=part)
    if told:
        count(DEGRADED)


def count_end(status: str, reason: str) -> None:
    """One chat that was ``answered`` with a stop or ``failed`` with a code; `complete` is not counted."""
    end = reason if status == "answered" else f"failed_{reason}"
    if end in ENDS:
        count(CHAT_ENDS, service=CHATS, end=end)


def count(name: str, value: float = 1, unit: MetricUnit = MetricUnit.Count, **dimensions: str) -> None:
    """Written at once, for what is not counted by every invocation of a function."""
    given = {"stage": stage(), **dimensions}
    with single_metric(name=name, unit=unit, value=value, namespace=NAMESPACE, default_dimensions=given):
        pass  # written as the block ends
