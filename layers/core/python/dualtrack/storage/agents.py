"""Agents by their hash, in the cache table, so that a chat's pinned agent outlives a deployment.

pk agent#<hash>   sk v1   the agent's JSON, with ttl
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dualtrack.requests import KEPT_FOR_PAUSES
from dualtrack.storage.dynamo import get, put, transact

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock

KEY_PREFIX: Final = "agent#"
"""The prefix of the partition keys; the role of ``turn`` may put no other items of the cache table."""

KEEP_SECONDS: Final = KEPT_FOR_PAUSES
"""A chat that pauses writes its agent again, unless its process has done so within a day."""

_FRESH_SECONDS: Final = 86_400
_MOST: Final = 32


@dataclass(frozen=True, slots=True)
class _Known:
    text: str
    written: float


@dataclass(frozen=True, slots=True)
class AgentStore:
    """Reads and writes of agents. A process caches what it has read or written: a hash has only one text."""

    client: DynamoDBClient
    table: str
    clock: Clock
    _known: dict[str, _Known] = field(default_factory=dict, repr=False, compare=False)

    def load(self, version: str) -> str | None:
        """The text of a hash; None if it is no longer stored."""
        if version not in self._known:
            item = get(self.client, self.table, _key(version))
            if item is None:
                return None
            self._remember(version, _Known(zlib.decompress(item["z"]).decode(), written=0))
        return self._known[version].text

    def keep(self, version: str, text: str) -> None:
        """Store the text, at most once a day in each process. Idempotent."""
        now = self.clock()
        known = self._known.get(version)
        if known and now < known.written + _FRESH_SECONDS:
            return
        expires = int(now) + KEEP_SECONDS
        item = {**_key(version), "z": zlib.compress(text.encode(), 9), "ttl": expires}
        transact(self.client, [put("agent", self.table, item)])
        self._remember(version, _Known(text, now))

    def _remember(self, version: str, known: _Known) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[version] = known


def _key(version: str) -> dict[str, str]:
    return {"pk": f"{KEY_PREFIX}{version}", "sk": "v1"}
