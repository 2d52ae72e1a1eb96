"""What is told of chats, keys and runs: ids and statuses, never a text of a conversation (CONTRACT 4). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from dualtrack.clock import iso
from dualtrack.codec import APART, TEXT, stored


@stored
@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell. ``message_id`` is the same however often it is told; ``type``: one of
    `dualtrack.event_names`, or a plug-in's own; ``at``: epoch milliseconds; ``profile``: the agent that it is about,
    empty for none; ``is_spread``: its listeners have it, its copy for EventBridge failed."""

    message_id: Annotated[str, APART]
    type: str
    at: int
    data: Annotated[Mapping[str, str | None], TEXT]
    profile: str = ""
    is_spread: bool = False

    @property
    def body(self) -> str:
        """The JSON that is sent."""
        return json.dumps({"type": self.type, "timestamp": iso(self.at / 1000), "data": dict(self.data)})


def cap_reached(key_id: str, cap: str, resets_at: float | None, now: float) -> Notice:
    """A request was refused by this cap of a key: told once until it resets, or once in all."""
    data = {"key_id": key_id, "cap": cap, "resets_at": iso(resets_at) if resets_at is not None else None}
    until = int(resets_at) if resets_at is not None else 0
    return Notice(
        f"msg_{key_id.removeprefix('key_')}_{cap}_{until}", "key.cap_reached", int(now * 1000), data
    )
