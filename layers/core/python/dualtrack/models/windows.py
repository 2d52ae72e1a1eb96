"""Context windows of models. Source: the models' pages (2026-11)."""

from __future__ import annotations

from typing import Final

from dualtrack.models.thinking import line_and_version

LEAST_WINDOW: Final = 200_000
"""The smallest window of a model."""

LEAST_MAXIMUM: Final = 64_000
"""The smallest maximum of a model's ``max_tokens``."""

_FROM_GENERATION_5: Final = 1_000_000


def context_window(model: str) -> int:
    """The model's context window in tokens, by its name: 200,000 unless known to be larger."""
    named = line_and_version(model)
    return _FROM_GENERATION_5 if named and named[1] >= (5, 0) else LEAST_WINDOW
