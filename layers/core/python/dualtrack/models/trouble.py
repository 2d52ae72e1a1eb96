"""The messages of a chat that failed because the model's service refused a request or did not answer. Pure.

Each has two texts, on every stage. The user's says what happened, and names no key, account, address or setting. The
operator's has the service's own words and the setting to check: administrators read it in the chat's receipt, and it is
in the log of `turn` and `abort`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.models.failures import CALLERS, FREE
from dualtrack.models.provider import provider_of
from dualtrack.text import clean, neutralise, one_line, preview

if TYPE_CHECKING:
    from dualtrack.errors import ModelRefused

NOT_SERVED: Final = f"The model's service does not serve this deployment at the moment. {FREE}"
"""A key, an account or a model that the service does not accept: only the operator can fix this."""
NOT_REACHED: Final = f"The model's service could not be reached. {FREE}"
BUSY: Final = f"The model is busy for longer than a chat can wait. Try again later. {FREE}"

WORDS: Final = 300
"""Maximum length of the service's own words as shown."""

_OPERATORS: Final = frozenset({401, 402, 403, 404})
_NO_CREDIT: Final = "credit balance"
"""Part of Anthropic's 400 for an account without credit."""
_SECRET: Final = re.compile(
    r"\b(?:sk|pk|pa|ghp|gho|ghs|ghu|github_pat|ctx7sk|Bearer)[-_ ][\w./+=-]{6,}|\b(?:AKIA|ASIA)\w{8,}"
    r"|[A-Za-z0-9+/=_-]{40,}"
)


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """What the operator's text names: the ``provider`` and the parameter with its key."""

    provider: str = ""
    key_id: str = ""


def own_words(text: object) -> str:
    """A service's message on one line: bounded, without what looks like a key, and no id line."""
    plain = one_line(clean(str(text))[: 4 * WORDS])
    return preview(neutralise(_SECRET.sub("…", plain)), WORDS)


def refusal(error: ModelRefused, details: ErrorDetails) -> tuple[str, str, str]:
    """(code, message, the operator's text) of a chat that failed because the service refused its request. What the
    caller has brought is told in the caller's words, and nobody else need know more."""
    if error.callers:
        return CALLERS, f"The model's service refuses {error.callers}: {error.said} {FREE}", ""
    is_operators = error.status in _OPERATORS or _NO_CREDIT in error.said.lower()
    users = (
        NOT_SERVED if is_operators else f"The model's service refused the request ({named(error)}). {FREE}"
    )
    operators = (
        f"The model's service refused the request: “{error.said}” ({named(error)})."
        f" Look at {_setting(error, details)}. {FREE}"
    )
    return "unavailable" if is_operators else "internal", users, operators


def named(error: ModelRefused) -> str:
    """``401 authentication_error``."""
    return f"{error.status} {error.kind}".strip()


def unreachable(said: str, details: ErrorDetails) -> tuple[str, str]:
    """(message, the operator's text) of a chat that failed because the service did not answer. ``said``: the last try's
    error; without it there is only the user's text."""
    if not said:
        return NOT_REACHED, ""
    address = provider_of(details.provider).address
    operators = f"The model's service could not be reached: {own_words(said)} Look at {address}. {FREE}"
    return NOT_REACHED, operators


def without_key(said: str) -> tuple[str, str]:
    """The same for a chat whose function found no key. ``said`` names it and the command that sets it, if known."""
    return NOT_SERVED, f"{own_words(said)} {FREE}" if said else ""


def _setting(error: ModelRefused, details: ErrorDetails) -> str:
    """What the operator should check first."""
    provider = provider_of(details.provider)
    if provider.look_at:
        return provider.look_at
    key = f"{provider.key} (the parameter {details.key_id})" if details.key_id else provider.key
    if error.status == 402 or _NO_CREDIT in error.said.lower():
        return f"the credit of the account that {key} belongs to"
    if error.status in (401, 403):
        return key
    return f"DUALTRACK_MODEL and {provider.address}"
