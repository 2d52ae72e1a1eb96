"""The metrics and their dimensions (docs/explain.md). Dashboard and alarms query the same ones.

    service, stage            a function's own counts; Powertools adds the service
    service, stage, part      degraded searches: one line with the part, one without
    service, stage, reason    prompts that should have been read from the model's cache
    service=chat, stage, end  how chats end, whichever function ends them

A metric costs $0.30 a month for each combination of dimension values, so all dimensions have a fixed set of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_lambda_powertools import Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from dualtrack.runtime.environment import stage
from dualtrack.runtime.plain_log import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable

MODEL_DOLLARS: Final = "ModelDollars"
"""What model calls cost, by the price table: of turns, of searches, of summaries."""

DEGRADED: Final = "DegradedSearches"
PARTS: Final = ("understand", "choose", "meaning", "rerank", "context7")
"""What a degraded search may lack: the model's reading of the question, its choice of the library, embeddings,
the model's order of the sections, or the documentation itself."""

KEY_CAPS_NEAR: Final = "KeyCapsNear"
"""Chats that found a cap of their API key nearly reached, or did not fit it; written where a setting asks for it."""

CACHE_MISSES: Final = "CacheMisses"
CACHE_REASONS: Final = (
    "model_changed", "system_changed", "tools_changed", "messages_changed", "unavailable", "other",
)  # fmt: skip
"""Why a prompt that goes on from an earlier one was not read from the cache, in the service's words."""

_FORGOTTEN: Final = "previous_message_not_found"
"""No miss: after a pause the service knows the earlier prompt as little as its cache does."""

CHAT_ENDS: Final = "ChatEnds"
CHATS: Final = "chat"
"""The service dimension of the metrics of chats, whichever function counts."""
ENDS: Final = (
    "max_turns", "insufficient_credits", "max_tokens", "context_window", "timeout", "max_cost", "refusal",
    "invalid_output", "other",
    "failed_internal", "failed_unavailable", "failed_timeout", "failed_model_busy", "failed_invalid_request",
)  # fmt: skip
"""Every end but `complete` and `cancelled`: another stop reason, or an error code."""


def stage_metrics() -> Metrics:
    """The function's metrics, with the stage as a dimension."""
    metrics = Metrics()
    metrics.set_default_dimensions(stage=stage())
    return metrics


def count_degraded(parts: Iterable[str]) -> None:
    """Count one search that lacked these `PARTS`: one line for each part, and one without a part."""
    for part in (lacking := tuple(parts)):
        count(DEGRADED, part=part)
    if lacking:
        count(DEGRADED)


def count_end(status: str, reason: str) -> None:
    """Count one chat that was ``answered`` with a stop reason or ``failed`` with a code; `complete` is not counted."""
    end = reason if status == "answered" else f"failed_{reason}"
    if end in ENDS:
        count(CHAT_ENDS, service=CHATS, end=end)


def count_cache_miss(reason: str) -> None:
    """Count one call of which the service has said this; an empty reason is none."""
    if reason not in ("", _FORGOTTEN):
        count(CACHE_MISSES, reason=reason if reason in CACHE_REASONS else "other")


def count(name: str, value: float = 1, unit: MetricUnit = MetricUnit.Count, **dimensions: str) -> None:
    """Write a metric at once, for events that do not happen in every invocation."""
    defaults = {"stage": stage(), **dimensions}
    with single_metric(name=name, unit=unit, value=value, namespace=NAMESPACE, default_dimensions=defaults):
        pass  # written when the block ends
