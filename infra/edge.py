"""A stage's public address: its own domain and a firewall, both by setting (DESIGN 9)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.stages import StageSettings

CLOUDFRONT_REGION: Final = "us-east-1"
"""Where CloudFront looks for certificates (CloudFront Developer Guide, "Requirements for using SSL/TLS
certificates")."""

_HOST: Final = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")
_CERTIFICATE: Final = re.compile(
    r"arn:aws[a-z-]*:acm:(?P<region>[a-z0-9-]+):\d{12}:certificate/[0-9a-f-]{36}"
)
_FIREWALL: Final = ("", "off", "on", "log")


@dataclass(frozen=True, slots=True)
class Edge:
    """``domain``: the stage's own host name, empty for AWS's. ``certificate_arn``: ACM's certificate for it, in
    us-east-1 for a stage with a page, else in the stage's region. ``firewall``: AWS WAF on the API's stage;
    ``firewall_log``: what it blocks or counts is logged.
    """

    domain: str = ""
    certificate_arn: str = ""
    firewall: bool = False
    firewall_log: bool = False

    @property
    def url(self) -> str:
        """The page's URL; empty if AWS chooses it."""
        return f"https://{self.domain}/" if self.domain else ""


PLAIN: Final = Edge()


def edge_from(environment: Mapping[str, str], stage: StageSettings) -> Edge:
    """``DOMAIN`` with ``CERTIFICATE_ARN``, and ``WAF`` (on, log, off). Raises ValueError for values that AWS would
    refuse during deployment.
    """
    domain, certificate = environment.get("DOMAIN", ""), environment.get("CERTIFICATE_ARN", "")
    if bool(domain) != bool(certificate):
        raise ValueError("DOMAIN and CERTIFICATE_ARN: set both or neither")
    if domain and not _HOST.fullmatch(domain):
        raise ValueError(f"DOMAIN: must be a host name such as chat.example.org, not {domain}")
    match = _CERTIFICATE.fullmatch(certificate)
    if certificate and not match:
        raise ValueError(f"CERTIFICATE_ARN: must be the ARN of an ACM certificate, not {certificate}")
    if match and stage.page and match["region"] != CLOUDFRONT_REGION:
        raise ValueError(f"CERTIFICATE_ARN: CloudFront only accepts certificates in {CLOUDFRONT_REGION}")
    switch = environment.get("WAF", "")
    if switch not in _FIREWALL:
        raise ValueError(f"WAF: on, log or off, not {switch}")
    return Edge(domain, certificate, switch in ("on", "log"), switch == "log")
