"""The API's rate limit per user: a counter per user and minute, with one write per request (CONTRACT 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.errors import ApiError

if TYPE_CHECKING:
    from dualtrack.storage.api_requests import ApiRequests

WINDOW_SECONDS: Final = 60
REQUESTS_PER_WINDOW: Final = 600


def count_request(requests: ApiRequests, user: str, now: int) -> None:
    """Count a request of the user, as `count_within` does."""
    count_within(requests, user, now, REQUESTS_PER_WINDOW)


def count_within(requests: ApiRequests, user: str, now: int, most: int, kind: str = "") -> None:
    """Count a request of the user; 429 with `retry_after` seconds once the window has ``most``. ``now`` in epoch
    seconds; ``kind``: requests that are counted besides."""
    window = now - now % WINDOW_SECONDS
    if requests.count(user, window, window + 10 * WINDOW_SECONDS, kind) > most:
        wait = window + WINDOW_SECONDS - now
        raise ApiError("rate_limited", f"Too many requests; try again in {wait} s.", {"retry_after": wait})
