"""How long a user waits for the first token, besides the model's own time: cold and warm, reckoned, not measured.

A message is taken by `api`, which starts the workflow; then `turn` starts while the client opens its `stream`. So the
wait is `api`'s, and the longer one of the other two. A cold start is its processor work in the function's share of a
processor (`dualtrack_stack.costs.cold_seconds`); a warm step is its requests to DynamoDB, one after another, and what
is between the functions. The network to the user and the platform's own cold start (a micro-VM, the code's download)
are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack_stack.costs import FULL_CPU_MEGABYTES, cold_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST_SECONDS: Final = 0.006
"""DynamoDB's part of a request: "single-digit millisecond" (DynamoDB Developer Guide, "What is Amazon DynamoDB?")."""

REQUEST_CPU_SECONDS: Final = 0.002
"""botocore's part of it, of a whole processor."""

INVOKE_SECONDS: Final = 0.02
"""Assumed: the gateway, or a state, and the start of a warm function."""

START_SECONDS: Final = 0.04
"""Assumed: StartExecution, until the first state is entered."""

POLL_SECONDS: Final = 0.1
"""The longest wait of a stream that has just had an event (`streaming.follow_events.PollIntervals.busy`)."""


@dataclass(frozen=True, slots=True)
class Requests:
    """DynamoDB requests: of `api` until the workflow starts, of `turn` until the model is called, of `turn` to write
    the first token, of `stream` to read it."""

    admit: int
    prepare: int
    write: int = 1
    read: int = 1


def cold(cpu_seconds: Mapping[str, float], megabytes: Mapping[str, int]) -> float:
    """Seconds of the cold starts on the way to the first token. ``cpu_seconds``:
    infra/dualtrack_stack/measured.json's."""
    seconds = {name: cold_seconds(cpu, megabytes[name]) for name, cpu in cpu_seconds.items()}
    return seconds["api"] + max(seconds["turn"], seconds["stream"])


def warm(requests: Requests, megabytes: Mapping[str, int]) -> float:
    """Seconds on the way to the first token with nothing to start."""
    return (
        INVOKE_SECONDS + _asked(requests.admit, megabytes["api"]) + START_SECONDS
        + INVOKE_SECONDS + _asked(requests.prepare + requests.write, megabytes["turn"])
        + POLL_SECONDS + _asked(requests.read, megabytes["stream"])
    )  # fmt: skip


def _asked(requests: int, megabytes: int) -> float:
    share = min(1.0, megabytes / FULL_CPU_MEGABYTES)
    return requests * (REQUEST_SECONDS + REQUEST_CPU_SECONDS / share)
