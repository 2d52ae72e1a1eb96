"""Sign-in: what prod must not offer, and what other providers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack_stack.sign_in_ports import PORTS, address_at

from tests.drivers.templates import readable
from tests.infra.rules.registry import IN_PROD, dependencies, named, of_kind, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template

_CLIENT: Final = {
    "Client": {
        "Type": "AWS::Cognito::UserPoolClient",
        "Properties": {
            "ExplicitAuthFlows": ["ALLOW_USER_PASSWORD_AUTH"],
            "CallbackURLs": ["http://localhost:8000/"],
            "SupportedIdentityProviders": ["Directory"],
        },
    },
    "Directory": {
        "Type": "AWS::Cognito::UserPoolIdentityProvider",
        "Properties": {"ProviderName": "Directory", "ProviderDetails": {"client_secret": "letmein"}},
    },
}


@rule(_CLIENT, IN_PROD)
def no_client_sends_a_password(template: Template) -> Iterator[str]:
    """Amazon Cognito Developer Guide, "Authentication flows": with USER_PASSWORD_AUTH and ADMIN_USER_PASSWORD_AUTH the
    password itself is sent; SRP and the sign-in page do not send it.
    """
    for key, client in of_kind(template, "AWS::Cognito::UserPoolClient").items():
        if any("PASSWORD" in flow for flow in client["ExplicitAuthFlows"]):
            yield key


def _is_the_terminals(client: Template) -> bool:
    return (
        client.get("CallbackURLs") == [address_at(port) for port in PORTS]
        and "LogoutURLs" not in client
        and client.get("AllowedOAuthFlows") == ["code"]
        and client["ExplicitAuthFlows"] == ["ALLOW_REFRESH_TOKEN_AUTH"]
    )


@rule(_CLIENT, IN_PROD)
def a_sign_in_leads_to_no_other_machine(template: Template) -> Iterator[str]:
    """OAuth 2.0 Security Best Current Practice (RFC 9700), "Redirect URI Validation Attacks in Authorization Code
    Grant": localhost is any program on the user's machine; without TLS a code can be intercepted. But a terminal has no
    other address (RFC 8252, "Loopback Interface Redirection"): a client for nothing else may have its three, by a code
    alone, which is worth nothing without its verifier.
    """
    for key, client in of_kind(template, "AWS::Cognito::UserPoolClient").items():
        if _is_the_terminals(client):
            continue
        for url in map(readable, client.get("CallbackURLs", []) + client.get("LogoutURLs", [])):
            if not url.startswith("https://") or "localhost" in url:
                yield f"{key}: {url}"


@rule({"Pool": {"Type": "AWS::Cognito::UserPool", "Properties": {"MfaConfiguration": "OPTIONAL"}}}, IN_PROD)
def an_administrator_has_a_second_factor(template: Template) -> Iterator[str]:
    """Amazon Cognito Developer Guide, "Adding MFA to a user pool": it is set per pool, not per group; OPTIONAL leaves
    it to each user, administrators included. Users of a federated provider use the provider's.
    """
    for key, pool in of_kind(template, "AWS::Cognito::UserPool").items():
        if pool.get("MfaConfiguration") != "ON":
            yield key


@rule(_CLIENT)
def a_client_waits_for_its_providers(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::Cognito::UserPoolClient", SupportedIdentityProviders: they must exist,
    and a plain name is no reference, so CloudFormation would not wait.
    """
    providers = of_kind(template, "AWS::Cognito::UserPoolIdentityProvider")
    for key, client in of_kind(template, "AWS::Cognito::UserPoolClient").items():
        for provider, properties in providers.items():
            names = client.get("SupportedIdentityProviders", [])
            is_listed = properties["ProviderName"] in names or provider in map(named, names)
            if not is_listed or provider not in dependencies(template, key):
                yield f"{key}: {provider}"


@rule(_CLIENT)
def a_providers_secret_stands_in_no_template(template: Template) -> Iterator[str]:
    """CloudFormation User Guide, "Get a secret or secret value from Secrets Manager": a dynamic reference is resolved
    at deployment; the template only contains the reference.
    """
    for key, provider in of_kind(template, "AWS::Cognito::UserPoolIdentityProvider").items():
        secret = provider["ProviderDetails"].get("client_secret", "{{resolve:")
        if not readable(secret).startswith("{{resolve:"):
            yield key
