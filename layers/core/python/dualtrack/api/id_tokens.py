"""Verifying an ID token without a gateway: signature, issuer, audience, time, kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

from dualtrack.api.identity import ApiCaller, identity_of
from dualtrack.errors import ApiError

if TYPE_CHECKING:
    from dualtrack.settings import Settings


@dataclass(frozen=True, slots=True)
class TokenVerifier:
    """Verifies tokens of one user pool's app clients, which are the ``audiences``. The pool's keys are fetched once
    and cached."""

    keys: jwt.PyJWKClient
    issuer: str
    audiences: tuple[str, ...]

    def verify(self, token: str) -> ApiCaller:
        """The caller, by their token; 401 if it is not valid."""
        return identity_of(self._claims(token), token)

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            key = self.keys.get_signing_key_from_jwt(token).key
            return jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                audience=self.audiences,
                issuer=self.issuer,
                options={"require": ["exp", "iat", "sub", "token_use"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise ApiError("unavailable", "The keys of the user pool cannot be read. Try again.") from error
        except jwt.PyJWTError as error:
            raise ApiError("unauthorized", "A valid ID token is needed.") from error


def verifier_of(settings: Settings) -> TokenVerifier:
    """The verifier of this stage's pool."""
    audiences = tuple(settings.token_audience.split(","))
    return TokenVerifier(jwt.PyJWKClient(settings.jwks_url), settings.token_issuer, audiences)
