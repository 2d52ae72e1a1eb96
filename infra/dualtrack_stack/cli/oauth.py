"""Signing in to a deployed stage: where, the question to the browser, and the exchange of its answer for tokens.

An authorization code with PKCE, by a public client of the terminal's own (RFC 8252, RFC 7636): the code is worth
nothing without the verifier, which never leaves this process, and an answer counts only with this attempt's ``state``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from dualtrack_stack.cli.client import CommandFailed, Missing, Unreachable, is_loopback
from dualtrack_stack.cli.transcript import one_line

_SCOPES: Final = "openid email profile"
_MOST_BYTES: Final = 100_000
"""Of an answer: tokens have some KB."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A stage's sign-in: the address of its endpoints, and the client that is the terminal's."""

    domain: str
    client_id: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a sign-in gives: the ID token for calls, the other one for its successors."""

    id_token: str
    refresh_token: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to sign in; ``back`` is where the browser is led afterwards."""

    provider: Provider
    back: str
    state: str
    verifier: str

    @property
    def address(self) -> str:
        """What the browser opens."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self.back,
            "scope": _SCOPES,
            "state": self.state,
            "code_challenge_method": "S256",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        }
        return f"{self.provider.domain}/oauth2/authorize?{urlencode(asked)}"

    def is_answered_by(self, address: str) -> bool:
        """Whether the address to which a browser was led answers this attempt, by a code or a refusal."""
        said = _said(address)
        return hmac.compare_digest(said.get("state", "").encode(), self.state.encode()) and bool(
            said.get("code") or said.get("error")
        )

    def tokens(self, address: str) -> Tokens:
        """Those that the code in the address gives. Raises `CommandFailed` where it is no answer to this attempt or
        the provider refuses."""
        said = _said(address)
        if not self.is_answered_by(address):
            raise CommandFailed("This address does not answer this sign-in. Start again.")
        if said.get("error"):
            why = said.get("error_description") or said["error"]
            raise CommandFailed(f"Signing in was refused: {one_line(why, 300)}")
        return _exchange(
            self.provider,
            {
                "grant_type": "authorization_code",
                "code": said["code"],
                "redirect_uri": self.back,
                "code_verifier": self.verifier,
            },
        )


def attempt(provider: Provider, back: str) -> Attempt:
    """A new one, which nobody can guess."""
    return Attempt(provider, back, secrets.token_urlsafe(32), secrets.token_urlsafe(48))


def provider_at(url: str) -> Provider:
    """The sign-in of the stage at this address, as its page has it. Raises `Missing` where there is none, `Unreachable`
    where nothing answers."""
    _is_safe(url, "The stage's address")
    answer = _sent(httpx.Request("GET", f"{url}/config.json"))
    try:
        sign_in: Any = answer.json()["sign_in"]
        domain, client_id = str(sign_in["domain"]).rstrip("/"), str(sign_in["terminal_client_id"])
    except (ValueError, KeyError, TypeError):
        raise Missing(
            f"{url} does not say where to sign in: it needs a stage with its page, of this release or a later one."
            " Else give --token, or set DUALTRACK_TOKEN."
        ) from None
    _is_safe(domain, "The sign-in's address")
    return Provider(domain, client_id)


def renewed(provider: Provider, refresh_token: str) -> Tokens:
    """New tokens. Raises `CommandFailed` if the sign-in has ended."""
    return _exchange(provider, {"grant_type": "refresh_token", "refresh_token": refresh_token})


def revoke(provider: Provider, refresh_token: str) -> bool:
    """Whether the provider has ended the sign-in, on every machine that has a copy of it."""
    form = {"token": refresh_token, "client_id": provider.client_id}
    try:
        return _sent(httpx.Request("POST", f"{provider.domain}/oauth2/revoke", data=form)).is_success
    except Unreachable:
        return False


def _exchange(provider: Provider, fields: dict[str, str]) -> Tokens:
    form = {**fields, "client_id": provider.client_id}
    answer = _sent(httpx.Request("POST", f"{provider.domain}/oauth2/token", data=form))
    try:
        given: Any = answer.json() if answer.is_success else {}
        return Tokens(
            str(given["id_token"]), str(given.get("refresh_token") or fields.get("refresh_token", ""))
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CommandFailed("The sign-in has ended or its code is used up. Sign in again.") from None


def _sent(request: httpx.Request) -> httpx.Response:
    """The answer. A redirect is none: it would carry a code or a token to an address that nobody has checked."""
    trusts = not is_loopback(str(request.url))
    try:
        with httpx.Client(timeout=15, trust_env=trusts, follow_redirects=False) as client:
            answer = client.send(request, stream=True)
            body = bytearray()
            for part in answer.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise Unreachable(f"{request.url.host} answers with more than a sign-in has.")
            return httpx.Response(answer.status_code, content=bytes(body), request=request)
    except httpx.HTTPError as error:
        raise Unreachable(f"{request.url.host} does not answer: {one_line(str(error), 200)}") from error


def _said(address: str) -> dict[str, str]:
    """What the query of an address says once; what it says twice is not believed."""
    try:
        fields = parse_qs(urlsplit(address.strip()).query, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items() if len(values) == 1}


def _is_safe(address: str, what: str) -> None:
    parts = urlsplit(address)
    is_plain = parts.scheme == "http" and is_loopback(address)
    if not (parts.hostname and (parts.scheme == "https" or is_plain)):
        raise Missing(f"{what} must begin with https://: {one_line(address, 200)}")
