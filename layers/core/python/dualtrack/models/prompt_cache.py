"""What a call's prompt costs with the service's prompt cache, by the moments of the calls (DESIGN 2.7). Pure.

Source: the Messages API's page "Prompt caching": an entry lives five minutes from its last use, a prefix that is still
there is read at the model's price of reads, and what is new is written at that of writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualtrack.codec import stored
from dualtrack.models.prices import CACHE_SECONDS
from dualtrack.models.turn import Usage


@stored
@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """The prefix that a call has left in the cache: its ``tokens``, and the moment of that call (epoch seconds). By
    default nothing, as before the first call."""

    tokens: int = 0
    at: float = 0.0

    def is_warm(self, at: float) -> bool:
        """Whether a call ``at`` that moment still reads it."""
        return self.tokens > 0 and at - self.at <= CACHE_SECONDS


def cached_prompt(before: CachedPrefix, tokens: int, at: float) -> Usage:
    """The usage of a prompt of ``tokens`` that begins with the prefix and has a breakpoint at its end."""
    read = min(before.tokens, tokens) if before.is_warm(at) else 0
    return Usage(cache_read_tokens=read, cache_write_tokens=tokens - read)
