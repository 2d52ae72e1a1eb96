"""How much a model takes in at once. Source: the models' pages (2026-11)."""

from __future__ import annotations

from typing import Final

from dualtrack.models.thinking import line_and_version

_USUAL: Final = 200_000
_FROM_GENERATION_5: Final = 1_000_000


def context_window(model: str) -> int:
    """The model's window in tokens, by its name: 200,000 unless it is known to be more."""
    named = line_and_version(model)
    return _FROM_GENERATION_5 if named and named[1] >= (5, 0) else _USUAL
