"""Federated identity providers and the sender of Cognito's mail, by setting (CONTRACT 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")
_URL: Final = re.compile(r"https://[^\s/?#]+(/[^\s?#]*)?(\?[^\s#]*)?")
_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_OWN: Final = "Cognito"


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


def sign_in_from(environment: Mapping[str, str]) -> SignIn:
    """``OIDC_*``, ``SAML_*`` and ``SES_*`` of docs/aws/settings.md. Raises ValueError for what Cognito would refuse."""
    sign_in = SignIn(_oidc(environment), _saml(environment), _mail(environment))
    if sign_in.oidc and sign_in.saml and sign_in.oidc.name == sign_in.saml.name:
        raise ValueError(f"OIDC_NAME and SAML_NAME: two providers cannot both be called {sign_in.oidc.name}")
    return sign_in


def _oidc(environment: Mapping[str, str]) -> Oidc | None:
    values = {key: environment.get(key, "") for key in ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_SECRET_NAME")}
    if not any(values.values()):
        return None
    missing = [key for key, value in values.items() if not value]
    if missing:
        raise ValueError(f"{', '.join(missing)}: needed for an OpenID Connect provider")
    issuer, client_id, secret = values.values()
    return Oidc(_name(environment, "OIDC_NAME", "Oidc"), _https("OIDC_ISSUER", issuer), client_id, secret)


def _saml(environment: Mapping[str, str]) -> Saml | None:
    url = environment.get("SAML_METADATA_URL", "")
    return Saml(_name(environment, "SAML_NAME", "Saml"), _https("SAML_METADATA_URL", url)) if url else None


def _mail(environment: Mapping[str, str]) -> Mail | None:
    sender = environment.get("SES_FROM", "")
    if not sender:
        return None
    if not _ADDRESS.fullmatch(sender):
        raise ValueError(f"SES_FROM: must be one address, not {sender}")
    return Mail(sender, environment.get("SES_IDENTITY") or sender)


def _name(environment: Mapping[str, str], key: str, default: str) -> str:
    name = environment.get(key) or default
    if not _NAME.fullmatch(name) or name == _OWN:
        raise ValueError(f"{key}: letters, digits and hyphens, at most 32, and not {_OWN}: {name}")
    return name


def _https(key: str, url: str) -> str:
    if not _URL.fullmatch(url):
        raise ValueError(f"{key}: must be an https address, not {url}")
    return url
