"""The samples of webhooks in the API's documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.drivers.api_samples import Collector

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.stack_client import Person


def samples_of(clean: Callable[[str], str], ann: Person) -> dict[str, Any]:
    """Of a webhook, made, tested and deleted."""
    samples = Collector(clean)
    made = {
        "url": "https://hooks.example.com/dualtrack",
        "events": ["chat.done", "chat.failed", "chat.paused"],
        "profiles": ["assistant"],
    }
    where = f"/v1/webhooks/{samples.call(ann, 'POST', '/v1/webhooks', made).json()['webhook_id']}"
    samples.call(ann, "GET", "/v1/webhooks")
    samples.call(ann, "POST", f"{where}/test")
    samples.call(ann, "POST", f"{where}/rotate", {"overlap": 3600})
    samples.call(ann, "GET", f"{where}/deliveries")
    samples.call(ann, "DELETE", where)
    of_the_core = "RotationBody"
    return {
        "bodies": {name: body for name, body in samples.collected()["bodies"].items() if name != of_the_core}
    }
