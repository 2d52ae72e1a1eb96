"""The logger of what also runs outside of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Log(Protocol):
    """Powertools' logger or the standard one."""

    def info(self, msg: str, *, extra: Mapping[str, object]) -> None:
        """Log a structured line."""
