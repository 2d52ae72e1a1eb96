"""What became of a webhook's messages, in words."""

from __future__ import annotations

from typing import Any

from tests.drivers.page_modules import said

TRIED: dict[str, Any] = {"answer": None, "error": None, "next_at": None, "milliseconds": 12}
DELIVERIES = [
    ({**TRIED, "status": "pending", "attempts": 0}, "pending: not tried yet"),
    ({**TRIED, "status": "delivered", "attempts": 1, "answer": 204}, "delivered: 204 in 12 ms"),
    (
        {**TRIED, "status": "failed", "attempts": 3, "error": "It timed out."},
        "failed: It timed out., 3 tries",
    ),
]


def test_deliveries_are_said_in_words() -> None:
    words = said("plugins/webhooks/delivery_words.js", "deliveryWords", [case for case, _ in DELIVERIES])
    assert words == [expected for _, expected in DELIVERIES]
