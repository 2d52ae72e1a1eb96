"""The external services that are used, their keys, and the stand-ins that replace them.

The settings are those of CONTRACT 2, the same names as on AWS. Without a key or an address for Claude the stack is
offline: the built-in model answers, sample documents replace Context7, and the network is not used.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.checked_settings import checked
from dualtrack.extras import how_to_install, is_installed
from dualtrack.models.provider import provider_of, providers, signed
from dualtrack.settings import DEFAULTS, NOT_SET, declared, keys, keys_of, text_of
from dualtrack.tools.mcp.config import dump_servers, parse_servers, together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.models.provider import Provider
    from dualtrack.settings import Settings
    from dualtrack.tools.mcp.config import McpServer

_AWS_SETTINGS: Final = MappingProxyType(
    {
        "aws_access_key": "AWS_ACCESS_KEY_ID",
        "aws_secret_key": "AWS_SECRET_ACCESS_KEY",
        "aws_session_token": "AWS_SESSION_TOKEN",
    }
)

MODEL: Final = "model"
DOCUMENTS: Final = "documents"
_STAND_INS: Final = MappingProxyType(
    {MODEL: "dualtrack_stack.local.offline_model", DOCUMENTS: "dualtrack_stack.local.sample_docs"}
)
AT_START: Final = tuple(
    sorted(
        {
            "ALLOWED_ORIGINS",
            "CONTEXT7_BASE_URL",
            "DUALTRACK_PROVIDER",
            *(provider.address for provider in providers()),
        }
    )
)
"""The settings that decide which processes run beside the functions, and whose pages these answer."""


@dataclass(frozen=True, slots=True)
class Outside:
    """``given``: what is set in the environment; ``settings``: those of the functions; ``bridged``: MCP servers by
    command, at the addresses that they have here."""

    given: Mapping[str, str]
    settings: Settings
    bridged: tuple[McpServer, ...] = ()

    @property
    def provider(self) -> Provider:
        """Who serves the model."""
        return provider_of(self.settings.dualtrack_provider)

    @property
    def mode(self) -> Literal["offline", "live"]:
        """Offline without the key that the model's provider needs, and without an address for it."""
        provider = self.provider
        configured = not provider.key or self.given.get(provider.key) or self.given.get(provider.address)
        return "live" if configured else "offline"

    @property
    def documents(self) -> Literal["samples", "context7"]:
        """Where documentation comes from."""
        if self.mode == "offline" and not self.given.get("CONTEXT7_BASE_URL"):
            return "samples"
        return "context7"

    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that are read; those of AWS for a provider there alone."""
        settings = (name for name, entry in declared().items() if entry.declared.table != "commands")
        aws = (*_AWS_SETTINGS.values(), "AWS_REGION", "AWS_DEFAULT_REGION")
        return (*settings, *(aws if self.provider.signing else ()))

    def problem(self) -> str:
        """What is missing, and how to fix it; empty if nothing is."""
        if self._key("voyage") != NOT_SET and not is_installed("voyage"):
            return (
                f"VOYAGE_API_KEY needs the extra `voyage`: {how_to_install('voyage')};"
                " without the key, documentation is ranked by keywords alone."
            )
        provider = self.provider
        if not provider.signing or self.given.get(provider.address):
            return ""
        needs = f"DUALTRACK_PROVIDER={provider.name} needs"
        if self._credentials(provider) == NOT_SET:
            return (
                f"{needs} AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN of"
                " temporary ones; `aws configure export-credentials --format env` prints them), or"
                f" {provider.address} for a server of your own."
            )
        return "" if self._region() else f"{needs} AWS_REGION, or {provider.address}."

    def stand_ins(self) -> tuple[tuple[str, str], ...]:
        """(name, module) of the servers that have to run here."""
        wanted = ((MODEL, self.mode == "offline"), (DOCUMENTS, self.documents == "samples"))
        return tuple((name, _STAND_INS[name]) for name, needed in wanted if needed)

    def with_stand_ins(self, urls: Mapping[str, str]) -> Outside:
        """The same with the stand-ins' addresses."""
        changes: dict[str, Any] = {}
        if MODEL in urls:
            changes[self.provider.address.lower()] = urls[MODEL]
            if self.settings.dualtrack_cache_word == DEFAULTS.dualtrack_cache_word:
                changes["dualtrack_cache_word"] = "on"  # the stand-in takes what Claude's own address takes
        if DOCUMENTS in urls:
            changes["context7_base_url"] = urls[DOCUMENTS]
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, **changes))

    def with_servers(self, bridged: tuple[McpServer, ...]) -> Outside:
        """The same with MCP servers that run here."""
        listed = together((*parse_servers(self.settings.mcp_servers), *bridged))
        settings = dataclasses.replace(self.settings, mcp_servers=dump_servers(listed))
        return dataclasses.replace(self, settings=settings, bridged=bridged)

    def renewed(self, given: Mapping[str, str]) -> tuple[Outside, tuple[str, ...]]:
        """The same with other settings, and the names of those that count from the next start on: they stay as they
        are. Raises ValueError for an invalid one.
        """
        later = tuple(name for name in AT_START if given.get(name) != self.given.get(name))
        kept = {name: self.given[name] for name in later if name in self.given}
        taken = {name: value for name, value in given.items() if name not in later}
        now = outside_from({**taken, **kept}).with_servers(self.bridged)
        urls = {MODEL: self.provider.address_in(self.settings), DOCUMENTS: self.settings.context7_base_url}
        return now.with_stand_ins({name: urls[name] for name, _ in self.stand_ins()}), later

    def parameters(self) -> dict[str, str]:
        """The values of the local template's parameters."""
        # the region of the emulated account means nothing to a service of AWS
        addresses: dict[str, Any] = {
            provider.address.lower(): provider.address_in(self.settings) or signing.endpoint(self._region())
            for provider, signing in signed(providers())
        }
        settings = dataclasses.replace(self.settings, **addresses)
        return {
            entry.parameter: text_of(getattr(settings, entry.field))
            for entry in declared().values()
            if entry.declared.used_by and not entry.is_key
        }

    def origins(self) -> tuple[str, ...]:
        """The pages of other origins that may call the API (ALLOWED_ORIGINS).

        The front port lets no others through, so the API behind it allows any (``settings``): its parameter holds only
        one origin.
        """
        return checked(self.given).allowed_origins

    def keys(self) -> dict[str, str]:
        """What goes into the local Parameter Store, by service; ``none`` where there is no key.

        Offline, a key is used only for a service whose address was given too.
        """
        signers = {provider.name: self._credentials(provider) for provider, _ in signed(providers())}
        return {**{name: self._key(name) for name in keys()}, **signers}

    def status(self) -> dict[str, Any]:
        """The response of ``GET /dev/status``."""
        return {
            "mode": self.mode,
            "model": "built-in offline model (no language model)"
            if self.mode == "offline"
            else self.settings.dualtrack_model,
            "provider": self.settings.dualtrack_provider,
            "documents": self.documents,
            "embeddings": self._key("voyage") != NOT_SET,
            "mcp": self.settings.mcp_servers != "[]",
        }

    def _region(self) -> str:
        return self.given.get("AWS_REGION") or self.given.get("AWS_DEFAULT_REGION") or ""

    def _credentials(self, provider: Provider) -> str:
        """The user's AWS credentials, as the SDK's clients call them: for the provider that is asked alone."""
        credentials = {field: self.given.get(name, "") for field, name in _AWS_SETTINGS.items()}
        are_set = (
            provider == self.provider and credentials["aws_access_key"] and credentials["aws_secret_key"]
        )
        kept = {field: value for field, value in credentials.items() if value}
        return json.dumps(kept) if are_set else NOT_SET

    def _key(self, name: str) -> str:
        service = declared()[keys()[name].declared.service.upper()]
        is_far = self.mode == "offline" and service.default and not self.given.get(service.name)
        return NOT_SET if is_far else keys_of(self.given).get(name, NOT_SET)


def outside_from(environment: Mapping[str, str]) -> Outside:
    """The services that the environment's settings select."""
    settings = dataclasses.replace(checked(environment), allowed_origins=("*",))
    return Outside(MappingProxyType(dict(environment)), settings)
