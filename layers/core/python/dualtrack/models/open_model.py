"""The only module that creates clients of a model's service: for turns, summaries and search."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dualtrack.models.provider import provider_of
from dualtrack.settings import settings_from

if TYPE_CHECKING:
    from types import ModuleType

    from dualtrack.models.protocol import Model
    from dualtrack.settings import Settings


def open_model(settings: Settings, provider: str = "") -> Model:
    """The service that the settings name, with its current key; the same client until the key changes.

    ``provider``: for a chat that began with another one. Raises `MissingKey` if there is no key or, for a service of
    AWS, no credentials.
    """
    model: Model = _client_of(provider or settings.dualtrack_provider).client_for(settings)
    return model


def model_with_key(settings: Settings, key: str) -> Model:
    """The same with a key that is at hand, for commands; `open_model` for a service that needs none."""
    provider = provider_of(settings.dualtrack_provider)
    if not provider.key:
        return open_model(settings)
    model: Model = _client_of(provider.name).connect(provider.address_in(settings), key)
    return model


def _client_of(provider: str) -> ModuleType:
    return import_module(f"dualtrack.models.providers.{provider_of(provider).name}.client")


# the deployment's own is loaded as the function starts, and not by its first call
_client_of(settings_from().dualtrack_provider)
