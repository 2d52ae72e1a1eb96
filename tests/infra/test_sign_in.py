"""Other identity providers and SES: validation of the settings, and the template."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack.checked_settings import checked
from dualtrack_stack.sign_in import Mail, Oidc, Saml, SignIn, sign_in_from
from dualtrack_stack.sign_in_ports import PORTS, address_at

from tests.drivers.templates import Stage, readable
from tests.infra.rules.registry import ALL_SET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OIDC = {"OIDC_ISSUER": "https://login.example.org", "OIDC_CLIENT_ID": "abc", "OIDC_SECRET_NAME": "login"}


def test_nothing_set_is_the_pools_own_users() -> None:
    assert sign_in_from(checked({})) == SignIn()


def test_two_providers_and_ses() -> None:
    values = {**OIDC, "SAML_METADATA_URL": "https://idp.example.org/m", "SES_FROM": "a@example.org"}
    assert sign_in_from(checked({**values, "OIDC_NAME": "Company", "SES_IDENTITY": "example.org"})) == SignIn(
        Oidc("Company", "https://login.example.org", "abc", "login"),
        Saml("Saml", "https://idp.example.org/m"),
        Mail("a@example.org", "example.org"),
    )


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"OIDC_ISSUER": "https://login.example.org"}, "OIDC_CLIENT_ID, OIDC_SECRET_NAME"),
        ({**OIDC, "OIDC_ISSUER": "http://login.example.org"}, "OIDC_ISSUER"),
        ({**OIDC, "OIDC_NAME": "Cognito"}, "OIDC_NAME"),
        ({**OIDC, "OIDC_NAME": "our provider"}, "OIDC_NAME"),
        ({"SAML_METADATA_URL": "file:///etc/passwd"}, "SAML_METADATA_URL"),
        ({**OIDC, "OIDC_NAME": "Us", "SAML_NAME": "Us", "SAML_METADATA_URL": "https://a.example/m"}, "Us"),
        ({"SES_FROM": "nobody"}, "SES_FROM"),
    ],
)
def test_what_cognito_would_refuse_is_refused_before(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        sign_in_from(checked(wrong))


def test_the_client_offers_them_and_the_sign_in_leads_to_the_domain(
    assembly: Callable[..., Path],
) -> None:
    stage = Stage("prod", assembly("prod", ALL_SET))
    client, terminal = stage.resources("Identity", "AWS::Cognito::UserPoolClient").values()
    for each in (client, terminal):
        assert each["SupportedIdentityProviders"] == ["COGNITO", "Oidc", "Saml"]
    assert client["CallbackURLs"] == client["LogoutURLs"] == ["https://chat.example.org/"]
    providers = stage.resources("Identity", "AWS::Cognito::UserPoolIdentityProvider")
    assert {provider["ProviderType"] for provider in providers.values()} == {"OIDC", "SAML"}
    (pool,) = stage.resources("Identity", "AWS::Cognito::UserPool").values()
    mail = pool["EmailConfiguration"]
    assert (mail["EmailSendingAccount"], mail["From"]) == ("DEVELOPER", "dualtrack@example.org")
    assert readable(mail["SourceArn"]).endswith(":identity/dualtrack@example.org")


def test_prod_without_an_address_has_no_sign_in_page(prod: Stage) -> None:
    """Cognito needs the redirect addresses; the page's address is known only after the first deployment."""
    client, _ = prod.resources("Identity", "AWS::Cognito::UserPoolClient").values()
    assert client["AllowedOAuthFlowsUserPoolClient"] is False
    assert "CallbackURLs" not in client


def test_the_terminals_client_takes_a_code_and_no_password(prod: Stage) -> None:
    _, terminal = prod.resources("Identity", "AWS::Cognito::UserPoolClient").values()
    assert terminal["ExplicitAuthFlows"] == ["ALLOW_REFRESH_TOKEN_AUTH"]
    assert (terminal["AllowedOAuthFlows"], terminal["GenerateSecret"]) == (["code"], False)
    assert terminal["CallbackURLs"] == [address_at(port) for port in PORTS]
    (chat,) = (
        function
        for function in prod.resources("Chat", "AWS::Lambda::Function").values()
        if "TOKEN_AUDIENCE" in function.get("Environment", {}).get("Variables", {})
    )
    assert len(readable(chat["Environment"]["Variables"]["TOKEN_AUDIENCE"]).split(",")) == 2
