"""Where a webhook may lead: https, to public addresses only (CONTRACT 4). Pure.

An address is checked twice: its text as the webhook is made, and whatever its name resolves to at each delivery, which
then connects to one of the checked addresses and resolves nothing again.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dualtrack.errors import invalid_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from urllib.parse import SplitResult

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL: Final = 2_000
PORTS: Final = (443, 8443)

_TEXT: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Printable ASCII without what no address has unescaped: space, quotes, ``< > \\ ^ ` { | }``."""
_NAME: Final = re.compile(
    r"(?=.{4,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
"""A name with a dot whose last label begins with a letter: no number, in no notation."""
_PRIVATE_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa")

_PUBLIC_IPV6: Final = ipaddress.ip_network("2000::/3")
"""All that is assigned to the public network (RFC 4291): not 64:ff9b::/96, fec0::/10, multicast, IPv4 in IPv6."""
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(network) for network in ("2002::/16", "2001::/32", "3fff::/20", "192.88.99.0/24")
)
"""Tunnels to other addresses (6to4, Teredo, and their relays), and examples: global by `ipaddress`."""


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where to connect. ``path`` with the query; ``is_loopback``: this machine, on the local stack alone."""

    host: str
    port: int
    path: str
    is_plain: bool = False
    is_loopback: bool = False


class NotAllowed(Exception):
    """The webhook leads where none may; the message says why."""


def parse_target(url: str, *, loopback: bool) -> WebhookTarget:
    """The target of an address, for which nothing is resolved. ``loopback``: whether this machine is allowed, by any
    port and without TLS. Raises `NotAllowed`."""
    if len(url) > MAX_URL or not _TEXT.fullmatch(url):
        raise NotAllowed(f"an address has at most {MAX_URL:,} characters, all of ASCII, and escapes others")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as wrong:
        raise NotAllowed("it is no address") from wrong
    host = (parts.hostname or "").lower()
    if "@" in parts.netloc:
        raise NotAllowed("an address has no user and no password")
    if "#" in url:
        raise NotAllowed("an address has no fragment")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if loopback and _is_this_machine(host) and parts.scheme in ("http", "https"):
        plain = parts.scheme == "http"
        return WebhookTarget(host, port or (80 if plain else 443), path, is_plain=plain, is_loopback=True)
    _check(parts, host, port)
    return WebhookTarget(host, port or PORTS[0], path)


def _check(parts: SplitResult, host: str, port: int | None) -> None:
    if parts.scheme != "https":
        raise NotAllowed("an address begins with https://")
    if port not in (None, *PORTS) or parts.netloc.endswith(":"):
        raise NotAllowed(f"the port is {' or '.join(map(str, PORTS))}")
    address = address_of(host)
    if address is not None and not is_public(address):
        raise NotAllowed("its host is no public address")
    if address is None and (not _NAME.fullmatch(host) or host.endswith(_PRIVATE_NAMES)):
        raise NotAllowed("its host is no public name")


def checked(addresses: Iterable[str], target: WebhookTarget) -> Sequence[str]:
    """The addresses of a target's name, to connect to one of them; IPv4 first, which every function can reach. Raises
    `NotAllowed` if there is none, or if a single one is not public."""
    found = list(dict.fromkeys(addresses))
    if not found:
        raise NotAllowed("its name has no address")
    for text in found:
        address = address_of(text)
        if address is None or not (address.is_loopback if target.is_loopback else is_public(address)):
            raise NotAllowed("its name leads to an address that is not public")
    return sorted(found, key=lambda text: ":" in text)


def address_of(host: str) -> Address | None:
    """The address that a host is in its usual notation, without a zone; None for a name."""
    try:
        return ipaddress.ip_address(host) if "%" not in host else None
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether an address is in the public network, and leads nowhere else."""
    if not address.is_global or address.is_multicast:
        return False
    if address.version == 6 and address not in _PUBLIC_IPV6:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def _is_this_machine(host: str) -> bool:
    address = address_of(host)
    return host == "localhost" if address is None else address.is_loopback


def check_url(url: str, *, loopback: bool) -> None:
    """Raises 400."""
    try:
        parse_target(url, loopback=loopback)
    except NotAllowed as wrong:
        raise invalid_request(f"url: {wrong}.") from None
