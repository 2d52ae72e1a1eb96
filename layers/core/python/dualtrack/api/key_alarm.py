"""Telling operators that an API key is near a cap, where a stage's setting says from which share on (CONTRACT 3).

Looked at whenever a chat under a key is admitted, or does not fit a cap: a metric, on which an alarm stands, and a line
in the log with the key and the cap. Its owner sees the same figures in `GET /v1/keys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger

from dualtrack.api.request_log import user_hash
from dualtrack.runtime.metrics import KEY_CAPS_NEAR, count

if TYPE_CHECKING:
    from dualtrack.api.identity import ApiCaller
    from dualtrack.credits.account import Account
    from dualtrack.errors import ApiError

NEAR: Final = "An API key is near a cap"
REACHED: Final = "A chat did not fit a cap of its API key"

logger: Final = Logger(child=True)


@dataclass(frozen=True, slots=True)
class KeyAlarm:
    """Tells of the key of a request. ``percent`` of a cap, from which on it is told; 0: never."""

    percent: int
    identity: ApiCaller
    now: float

    def admitted(self, account: Account) -> None:
        """A chat of the request holds its part: tell if the key is near a cap."""
        key_id = self.identity.key_id
        cap = account.near_cap(key_id, self.percent, self.now) if self.percent and key_id else None
        if cap:
            self._tell(NEAR, cap=cap, **account.key_view(key_id, self.now))

    def refused(self, refusal: ApiError) -> None:
        """A chat of the request was not admitted: tell if a cap of its key was why."""
        if self.percent and refusal.code == "key_cap_reached":
            self._tell(REACHED, **refusal.extra)

    def _tell(self, message: str, **figures: Any) -> None:
        owner = user_hash(self.identity.payer)
        logger.warning(message, key_id=self.identity.key_id, owner_hash=owner, **figures)
        count(KEY_CAPS_NEAR)
