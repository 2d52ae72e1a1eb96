"""Log lines and metrics of the function `stream`, in the form of the others'.

They are written by Powertools, whose import would be a third of this function's cold start.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from dualtrack.runtime.environment import service, stage

NAMESPACE: Final = "dualtrack"
"""Of all metrics (`dualtrack.runtime.metrics`)."""

BROKEN_STREAMS: Final = "BrokenStreams"
"""Event streams that ended with an error after their beginning, which no function's error count contains."""


def log_line(level: str, message: str, **fields: Any) -> None:
    """Write one line of JSON with the service's name."""
    line = {"level": level, "service": service(), "message": message, "timestamp": _now_ms(), **fields}
    print(json.dumps(line, default=str), flush=True)  # noqa: T201 - Lambda's log


def count_broken_stream() -> None:
    """Write the metric in CloudWatch's embedded format, with the dimensions of the other metrics."""
    declared = {
        "Namespace": NAMESPACE,
        "Dimensions": [["service", "stage"]],
        "Metrics": [{"Name": BROKEN_STREAMS, "Unit": "Count"}],
    }
    line = {
        "_aws": {"Timestamp": _now_ms(), "CloudWatchMetrics": [declared]},
        "service": service(),
        "stage": stage(),
        BROKEN_STREAMS: 1.0,
    }
    print(json.dumps(line), flush=True)  # noqa: T201 - Lambda's log


def _now_ms() -> int:
    return int(time.time() * 1000)
