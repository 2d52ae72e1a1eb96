"""Copies of what webhooks are told on an EventBridge bus of the account: ids and statuses, no text (CONTRACT 4)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.notices import Notice

SOURCE: Final = "dualtrack"
_AT_ONCE: Final = 10
"""Entries of a request (EventBridge API Reference, "PutEvents")."""


@dataclass(frozen=True, slots=True)
class EventBus:
    """A bus by its name; ``client``: boto3's "events". An event that is put again has the same ``id`` in its detail."""

    client: Any
    name: str

    def put(self, notices: Sequence[Notice]) -> frozenset[str]:
        """Put those that are not there; returns the ids of those that were not taken. Raises nothing that the bus can
        cause: webhooks do not wait for it."""
        failed = set[str]()
        for some in (notices[start : start + _AT_ONCE] for start in range(0, len(notices), _AT_ONCE)):
            try:
                answer = self.client.put_events(Entries=[self._entry(notice) for notice in some])
            except (BotoCoreError, ClientError):
                failed.update(notice.message_id for notice in some)
            else:
                results = zip(some, answer["Entries"], strict=True)
                failed.update(notice.message_id for notice, entry in results if entry.get("ErrorCode"))
        return frozenset(failed)

    def _entry(self, notice: Notice) -> dict[str, str]:
        detail = {"id": notice.message_id, **json.loads(notice.body)}
        return {
            "EventBusName": self.name,
            "Source": SOURCE,
            "DetailType": notice.type,
            "Detail": json.dumps(detail),
        }
