"""A stage's public address: its own domain and a firewall, both by setting (DESIGN 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dualtrack.settings import Settings

    from dualtrack_stack.stages import StageSettings

CLOUDFRONT_REGION: Final = "us-east-1"
"""Where CloudFront looks for certificates (CloudFront Developer Guide, "Requirements for using SSL/TLS
certificates")."""


@dataclass(frozen=True, slots=True)
class StageEdge:
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


PLAIN: Final = StageEdge()


def edge_from(settings: Settings, stage: StageSettings) -> StageEdge:
    """``DOMAIN`` with ``CERTIFICATE_ARN``, and ``WAF``. Raises ValueError for values that AWS would refuse together."""
    domain, certificate = settings.domain, settings.certificate_arn
    if bool(domain) != bool(certificate):
        raise ValueError("DOMAIN and CERTIFICATE_ARN: set both or neither")
    if certificate and stage.page and certificate.split(":")[3] != CLOUDFRONT_REGION:
        raise ValueError(
            f"CERTIFICATE_ARN = {certificate}: CloudFront only accepts certificates in {CLOUDFRONT_REGION}"
        )
    return StageEdge(domain, certificate, settings.waf != "off", settings.waf == "log")
