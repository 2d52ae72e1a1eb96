"""Federated identity providers and the sender of Cognito's mail, by setting (CONTRACT 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dualtrack.settings import Settings


@dataclass(frozen=True, slots=True)
class Oidc:
    """An OpenID Connect provider. ``secret``: the name of the secret in Secrets Manager that holds the client secret;
    CloudFormation reads it on deployment, so it is in no template.
    """

    name: str
    issuer: str
    client_id: str
    secret: str


@dataclass(frozen=True, slots=True)
class Saml:
    """A SAML 2.0 provider; its metadata is at ``metadata_url``."""

    name: str
    metadata_url: str


@dataclass(frozen=True, slots=True)
class Mail:
    """``sender``: the From address of Cognito's mail, sent over SES; ``identity``: its verified address or domain."""

    sender: str
    identity: str


@dataclass(frozen=True, slots=True)
class SignIn:
    """A deployment's federated providers and mail sender."""

    oidc: Oidc | None = None
    saml: Saml | None = None
    mail: Mail | None = None


OWN_USERS: Final = SignIn()


def sign_in_from(settings: Settings) -> SignIn:
    """``OIDC_*``, ``SAML_*`` and ``SES_*`` of docs/aws/settings.md. Raises ValueError for what Cognito would refuse."""
    sign_in = SignIn(_oidc(settings), _saml(settings), _mail(settings))
    if sign_in.oidc and sign_in.saml and sign_in.oidc.name == sign_in.saml.name:
        raise ValueError(f"OIDC_NAME and SAML_NAME: two providers cannot both be called {sign_in.oidc.name}")
    return sign_in


def _oidc(settings: Settings) -> Oidc | None:
    values = {
        "OIDC_ISSUER": settings.oidc_issuer,
        "OIDC_CLIENT_ID": settings.oidc_client_id,
        "OIDC_SECRET_NAME": settings.oidc_secret_name,
    }
    if not any(values.values()):
        return None
    if missing := [key for key, value in values.items() if not value]:
        raise ValueError(f"{', '.join(missing)}: needed for an OpenID Connect provider")
    return Oidc(settings.oidc_name, settings.oidc_issuer, settings.oidc_client_id, settings.oidc_secret_name)


def _saml(settings: Settings) -> Saml | None:
    url = settings.saml_metadata_url
    return Saml(settings.saml_name, url) if url else None


def _mail(settings: Settings) -> Mail | None:
    return Mail(settings.ses_from, settings.ses_identity) if settings.ses_from else None
