"""What listeners may be told of: events of the core, and of the plug-ins that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from dualtrack.plugin import plugins

EVENT_NAMES: Final = (
    "chat.done",
    "chat.failed",
    "chat.paused",
    "key.cap_reached",
    *(name for plugin in plugins() for name in plugin.events),
)

if TYPE_CHECKING:
    EventName = str
else:
    EventName = Literal[EVENT_NAMES]
