"""The service's own word on its prompt cache: whether a request begins with an earlier one, as it should (the Messages
API's page "Cache diagnostics"). Pure.

    request   diagnostics.previous_message_id   an answer's id, or none: in any case the service remembers the request
    answer    message_start, diagnostics        null: nothing has changed; a reason; or a reason that is null: too early

A provider's client says which service is asked, by its address and the setting. The question names hashes: no text is
kept there for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.codec import stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic.types import Message

    from dualtrack.errors import ModelRefused

FIELD: Final = "diagnostics"
_ID: Final = re.compile(r"[\w.-]{1,128}", re.ASCII)
_REASON: Final = re.compile(r"[a-z0-9_]{1,40}")
_NAMED: Final = re.compile(rf"\b{FIELD}\b")

_UNKNOWN_FIELD: Final = (400, 422)
"""With which services, and gateways in front of them, refuse what they do not know."""

NOT_FOUND: Final = "previous_message_not_found"
"""The reason that says nothing of the request: the service has forgotten the one before, as it does in a pause."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class CacheWord:
    """What it said of a request that continues another: the ``reason`` why that one's prompt could not be read from the
    cache, empty if nothing had changed, and about how many ``tokens`` had to be read anew."""

    reason: str = ""
    tokens: int = 0


def asking(previous: str) -> dict[str, Any]:
    """The field of a request behind the message ``previous``; empty for none."""
    return {FIELD: {"previous_message_id": previous or None}}


def not_asking(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request without the field."""
    return {name: value for name, value in request.items() if name != FIELD}


def is_refused(refused: ModelRefused) -> bool:
    """Whether a service that was asked has refused the request for that."""
    return refused.status in _UNKNOWN_FIELD and _NAMED.search(refused.said) is not None


def message_id(message: Message) -> str:
    """The id under which the service remembers the request; empty if it cannot be sent back."""
    name = getattr(message, "id", "")
    return name if isinstance(name, str) and _ID.fullmatch(name) else ""


def cache_word(request: Mapping[str, Any], message: Message) -> CacheWord | None:
    """What the beginning of an answer says; None if it was not asked of an earlier message, or says nothing yet."""
    if not request.get(FIELD, {}).get("previous_message_id"):
        return None
    said = getattr(message, FIELD, None)
    if said is None:
        return CacheWord()
    reason = getattr(said, "cache_miss_reason", None)
    kind, tokens = getattr(reason, "type", ""), getattr(reason, "cache_missed_input_tokens", 0)
    if not isinstance(kind, str) or not _REASON.fullmatch(kind):
        return None
    return CacheWord(kind, tokens if isinstance(tokens, int) and tokens > 0 else 0)
