"""What a request asks of its answer besides (CONTRACT 10): shorter, up to a text, with a call of its client's tools."""

from __future__ import annotations

from dataclasses import dataclass

from dualtrack.codec import stored


@stored
@dataclass(frozen=True, slots=True)
class Wanted:
    """``max_tokens``: of each model call, 0 for the profile's; ``stop``: texts that end an answer; ``must_call``: the
    answer ends with a call of the client's tools; ``tools``: those that may be called, None for all."""

    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    must_call: bool = False
    tools: tuple[str, ...] | None = None

    def allows(self, tool: str) -> bool:
        """Whether this tool of the client may be called."""
        return self.tools is None or tool in self.tools
