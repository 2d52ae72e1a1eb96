"""The trace of the current invocation."""

from __future__ import annotations

import os


def trace_header() -> str:
    """The header that Lambda sets in the environment of each invocation (AWS Lambda Developer Guide, "Defined runtime
    environment variables"); empty without tracing."""
    return os.environ.get("_X_AMZN_TRACE_ID", "")
