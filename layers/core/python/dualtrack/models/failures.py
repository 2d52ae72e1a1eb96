"""Who owns a failure, by its code: what is charged, and how it is said to clients of OpenAI's API. Pure.

    code              owner      credits                       a refusal as      a response's error
    internal          ours       none                          500 internal      server_error
    timeout           ours       none                          504 timeout       server_error
    unavailable       service    none                          503 unavailable   server_error
    model_busy        service    none                          503 unavailable   server_error
    invalid_request   caller     none ten times an hour,       400 invalid_…     invalid_prompt
                                 then the base price

Whatever was delivered or computed counts in receipts and in caps in dollars, whoever owns the failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

FREE: Final = "Nothing was charged."

CALLERS: Final = "invalid_request"
"""The code of a chat that failed by what its request brought: a tool that the model's service refuses."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """``refused_as``: the code of the refusal by OpenAI's API; ``response``: the code in a response of it."""

    owner: Literal["ours", "service", "caller"]
    refused_as: str
    response: str = "server_error"


FAILURES: Final[Mapping[str, FailureKind]] = MappingProxyType(
    {
        "internal": FailureKind("ours", "internal"),
        "timeout": FailureKind("ours", "timeout"),
        "unavailable": FailureKind("service", "unavailable"),
        "model_busy": FailureKind("service", "unavailable"),
        CALLERS: FailureKind("caller", "invalid_request", "invalid_prompt"),
    }
)


def words_of(message: str, charged: int) -> str:
    """The message of a failure that has cost so many credits."""
    if not charged:
        return message
    unit = "credit was" if charged == 1 else "credits were"
    return f"{message.removesuffix(FREE)}{charged} {unit} charged: too many chats ended like this within an hour."
