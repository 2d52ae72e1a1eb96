"""What a function reads in its environment besides its settings (`dualtrack.settings`): Lambda's own variables, and the
names under which its log lines and metrics are found."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def trace_header() -> str:
    """The header that Lambda sets in the environment of each invocation (AWS Lambda Developer Guide, "Defined runtime
    environment variables"); empty without tracing."""
    return os.environ.get("_X_AMZN_TRACE_ID", "")


def stage() -> str:
    """The stage, a dimension of every metric."""
    return os.environ.get("STAGE") or "none"


def service() -> str:
    """The function's name, as Powertools reads it."""
    return os.environ.get("POWERTOOLS_SERVICE_NAME", "stream")


def for_a_child() -> dict[str, str]:
    """What a Python of its own needs of it: where Lambda keeps the interpreter's libraries."""
    return variables(("LD_LIBRARY_PATH",))


def variables(names: Iterable[str]) -> dict[str, str]:
    """The variables of these names that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def put_variables(values: Mapping[str, str]) -> None:
    """Set variables of this process, for packages that read their keys there."""
    os.environ.update(values)
