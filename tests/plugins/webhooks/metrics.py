"""The metrics that its alarms are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import pytest


def write(function: Callable[..., AbstractContextManager[Any]], capture: pytest.MonkeyPatch) -> None:
    """A webhook is disabled."""
    with function("deliver", capture) as module:
        module.deliverer.disabled()
