"""What a provider of the model is, and how it is found. It is a folder of ``dualtrack/models/providers``, which no
file outside of it names.

    provider.py   PROVIDER, a `Provider`: what functions, deployments and commands must know of it, as plain values
    client.py     ``client_for(settings)``, a `dualtrack.models.protocol.Model`: imported where it is asked, since
                  it loads the service's library

The folders are listed, without a registration. The settings that a provider names are entries of `dualtrack.settings`:
ones that there are, or its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dualtrack.settings import DEFAULTS, declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dualtrack.settings import Settings

FOLDER: Final = Path(__file__).with_name("providers")
PROVIDERS: Final = tuple(sorted(path.parent.name for path in FOLDER.glob("*/provider.py")))
"""The names of the providers that are there."""

FIRST: Final = "anthropic"
"""The provider of what is stored without one: never another, whatever the default of a deployment is."""

_REGION: Final = "{region}"


@dataclass(frozen=True, slots=True)
class Signing:
    """A service of AWS: requests are signed with a role's credentials, and need no key.

    ``url``: its endpoint, with ``{region}``. The functions that ask the model may call these ``actions`` of the
    ``service`` on the ``resource``, the end of an ARN in the stage's account and one region; ``wildcard`` says why it
    has a star. ``credentials``: the variable with the parameter of those that a local stack's user gives, because
    the roles of an emulated account do not exist on AWS.
    """

    service: str
    actions: tuple[str, ...]
    resource: str
    wildcard: str
    url: str
    credentials: str

    def endpoint(self, region: str) -> str:
        """The endpoint's URL in a region."""
        return self.url.replace(_REGION, region)

    def region_of(self, address: str) -> str:
        """The region in a URL of the endpoint, for which requests are signed; empty for other URLs."""
        hosts = re.escape(urlsplit(self.url).hostname or "").replace(re.escape(_REGION), "([a-z0-9-]+)")
        match = re.fullmatch(hosts, urlsplit(address).hostname or "")
        return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Provider:
    """A service that has the model. ``name``: its folder's, which DUALTRACK_PROVIDER takes; ``title``: for people.

    ``span_name``: what the conventions of OpenTelemetry call it. ``served``: the id under which it has a model.
    ``address`` and ``key``: the settings with its address and its key, none if it needs no key; ``question``: how a
    person is asked for the key. ``look_at``: what an operator looks at when it refuses a request, if that is not the
    key. ``opened``: how an account gets the model from a service without a key.
    """

    name: str
    title: str
    span_name: str
    address: str
    served: Callable[[str], str] = str
    key: str = ""
    question: str = ""
    look_at: str = ""
    opened: str = ""
    signing: Signing | None = None

    def address_in(self, settings: Settings) -> str:
        """Its address."""
        return str(getattr(settings, self.address.lower()))

    def key_id(self, settings: Settings) -> str:
        """The parameter of its key; empty without one."""
        return str(getattr(settings, declared()[self.key].field)) if self.key else ""


@cache
def provider_of(name: str) -> Provider:
    """The provider of this name; the default one for none."""
    module = import_module(f"dualtrack.models.providers.{name or DEFAULTS.dualtrack_provider}.provider")
    provider: Provider = module.PROVIDER
    return provider


def providers() -> tuple[Provider, ...]:
    """All of them."""
    return tuple(map(provider_of, PROVIDERS))


def signed(among: Iterable[Provider]) -> Iterator[tuple[Provider, Signing]]:
    """Those that are services of AWS."""
    return ((provider, provider.signing) for provider in among if provider.signing)
