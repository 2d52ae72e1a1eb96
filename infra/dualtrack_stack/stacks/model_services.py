"""The services that have the model: which of them functions may call, and what they are told of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.models.provider import providers, signed
from dualtrack.settings import declared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.models.provider import Provider, Signing
    from dualtrack.settings import Settings

CREDENTIALS: Final = tuple(signing.credentials for _, signing in signed(providers()))
"""The variables with the parameters of credentials that only the local stack has (`Signing.credentials`)."""

SIGNERS: Final = tuple(provider.name for provider, _ in signed(providers()))
"""The last parts of the names of those parameters."""


def used(settings: Settings | None) -> tuple[Provider, ...]:
    """The providers that may be called; all of them if a parameter decides. The one before keeps its permission, since
    its chats may still run, but is in no function's environment."""
    if settings is None:
        return providers()
    names = (settings.dualtrack_provider, settings.dualtrack_provider_before)
    return tuple(provider for provider in providers() if provider.name in names)


def unused_keys(settings: Settings | None) -> frozenset[str]:
    """The keys of providers that may not be called, by the last part of their parameters' names."""
    needed = {provider.key for provider in used(settings)}
    others = (provider.key for provider in providers() if provider.key and provider.key not in needed)
    return frozenset(declared()[key].stored for key in others)


def region_of(provider: Provider, signing: Signing, settings: Settings | None) -> str:
    """The region in which a service of AWS is called, empty for the stage's own."""
    return signing.region_of(provider.address_in(settings)) if settings else ""


def wildcards(settings: Settings | None) -> Mapping[str, str]:
    """The resources of services of AWS as cdk-nag writes them, and why they have a star."""
    return {
        f"arn:<AWS::Partition>:{signing.service}:{region_of(provider, signing, settings) or '<AWS::Region>'}"
        f":<AWS::AccountId>:{signing.resource}": signing.wildcard
        for provider, signing in signed(used(settings))
    }


def variables(chosen: Mapping[str, str], region: str, stored: Mapping[str, str]) -> dict[str, str]:
    """What functions are told of services of AWS: the address, if none is ``chosen`` that in the region, and the
    parameter of credentials, if one is ``stored``."""
    told = {}
    for provider, signing in signed(providers()):
        told[provider.address] = chosen[provider.address] or signing.endpoint(region)
        told[signing.credentials] = stored.get(provider.name, "")
    return told
