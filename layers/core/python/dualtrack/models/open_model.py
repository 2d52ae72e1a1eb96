"""The only module that creates clients of a model's service: for turns, summaries and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.models.anthropic import connect
from dualtrack.models.cache_word import is_asked
from dualtrack.models.providers import BEDROCK
from dualtrack.runtime.secrets import needed, secret

if TYPE_CHECKING:
    from dualtrack.models.protocol import Model
    from dualtrack.settings import Settings


def open_model(settings: Settings, provider: str = "") -> Model:
    """The service that the settings name, with its current key; the same client until the key changes.

    ``provider``: for a chat that began with another one. Raises `MissingKey` if there is no key or, for Bedrock, no
    credentials.
    """
    if (provider or settings.dualtrack_provider) == BEDROCK:
        from dualtrack.models import bedrock  # noqa: PLC0415 - loads boto3 and more of the SDK

        return bedrock.connect(settings.bedrock_base_url, secret(settings.bedrock_secret))
    asks = is_asked(settings.anthropic_base_url, settings.dualtrack_cache_word)
    return connect(settings.anthropic_base_url, needed(settings.anthropic_secret), asks_about_cache=asks)
