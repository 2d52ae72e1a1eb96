"""The trace that a function's invocation belongs to."""

from __future__ import annotations

import os


def trace_header() -> str:
    """As Lambda has it in the environment of each invocation (AWS Lambda Developer Guide, "Defined runtime environment
    variables"); empty where nothing is traced."""
    return os.environ.get("_X_AMZN_TRACE_ID", "")
