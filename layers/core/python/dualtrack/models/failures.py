"""Who owns a failure, by its code, and what is charged. Pure.

    code              owner      credits
    internal          ours       none
    timeout           ours       none
    unavailable       service    none
    model_busy        service    none
    invalid_request   caller     none ten times an hour, then the base price

Whatever was delivered or computed counts in receipts and in caps in dollars, whoever owns the failure.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

FREE: Final = "Nothing was charged."

CALLERS: Final = "invalid_request"
"""The code of a chat that failed by what its request brought: a tool that the model's service refuses."""


OWNERS: Final[Mapping[str, Literal["ours", "service", "caller"]]] = MappingProxyType(
    {
        "internal": "ours",
        "timeout": "ours",
        "unavailable": "service",
        "model_busy": "service",
        CALLERS: "caller",
    }
)


def words_of(message: str, charged: int) -> str:
    """The message of a failure that has cost so many credits."""
    if not charged:
        return message
    unit = "credit was" if charged == 1 else "credits were"
    return f"{message.removesuffix(FREE)}{charged} {unit} charged: too many chats ended like this within an hour."
