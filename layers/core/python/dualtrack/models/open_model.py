"""The one place that builds clients of a model's service: for turns, summaries and search alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.models.anthropic import connect
from dualtrack.runtime.secrets import needed

if TYPE_CHECKING:
    from dualtrack.models.protocol import Model
    from dualtrack.settings import Settings


def open_model(settings: Settings) -> Model:
    """The service that the settings name, with its key as it is now; the same client as long as that stays.

    Raises `MissingKey` where the operator has put none.
    """
    return connect(settings.anthropic_base_url, needed(settings.anthropic_secret))
