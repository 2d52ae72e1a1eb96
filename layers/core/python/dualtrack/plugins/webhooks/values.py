"""A webhook, what it is told, and what has to be done for an owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from dualtrack.codec import APART, stored
from dualtrack.storage.outbox import NOTICE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.notices import Notice

DeliveryStatus = Literal["pending", "delivered", "failed"]

TRIAL: Final = "webhook.test"
"""The type of what its owner sends to see that it arrives."""

SLOW_MS: Final = 1_000
"""Longer answers are slow."""


@stored(whole=True)
@dataclass(frozen=True, slots=True)
class Webhook:
    """Where somebody wants to be told. Times are epoch seconds, 0 for none. ``secret``: encrypted, in base64, and
    ``replaced``, until ``replaced_until``, the one before the last rotation. ``profiles``: none: all.

    ``failing_since``: since when no delivery has arrived; ``milliseconds``: how long its last answer took.
    """

    webhook_id: Annotated[str, APART]
    owner: Annotated[str, APART]
    url: str
    events: tuple[str, ...]
    secret: str
    created_at: int
    profiles: tuple[str, ...] = ()
    replaced: str = ""
    replaced_until: int = 0
    failing_since: int = 0
    disabled_at: int = 0
    disabled_because: str = ""
    milliseconds: int = 0
    claimed_until: int = 0
    wakes: int = 0

    def wants(self, notice: Notice) -> bool:
        """Whether it is told of this."""
        is_about = not self.profiles or not notice.profile or notice.profile in self.profiles
        return notice.type in self.events and is_about and not self.disabled_at and not notice.is_spread

    @property
    def is_slow(self) -> bool:
        """Whether it is served behind those that answer, for which it may not wait."""
        return self.failing_since > 0 or self.milliseconds > SLOW_MS

    def secrets(self, now: float) -> Sequence[str]:
        """The secrets that hold, encrypted, the newest first."""
        return (self.secret, *((self.replaced,) if now < self.replaced_until else ()))


@stored
@dataclass(frozen=True, slots=True)
class Delivery:
    """A notice for a webhook. ``at``: when it happened, epoch milliseconds; ``next_at``: when it is tried next,
    ``tried_at``: when it was last, epoch seconds. ``answer``: the HTTP status of the last attempt, 0 without one, and
    then ``error`` says why."""

    webhook_id: Annotated[str, APART]
    message_id: Annotated[str, APART]
    at: Annotated[int, APART]
    type: str
    body: str
    status: DeliveryStatus = "pending"
    attempts: int = 0
    next_at: int = 0
    tried_at: int = 0
    answer: int = 0
    error: str = ""
    milliseconds: int = 0

    @property
    def position(self) -> str:
        """Its place among those of its webhook, by time."""
        return f"{self.at:013d}#{self.message_id}"


@dataclass(frozen=True, slots=True)
class Due:
    """What has to be done for an owner: webhooks to tell something, and notices that no webhook has yet."""

    owner: str
    sk: str

    @property
    def is_notice(self) -> bool:
        """Whether it is a notice, else a webhook."""
        return self.sk.startswith(NOTICE_PREFIX)
