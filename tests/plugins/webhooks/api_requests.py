"""What requests about webhooks are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.plugins.webhooks.bodies import WebhookBody

if TYPE_CHECKING:
    from tests.clients.api_client import Api

BODIES: Final[dict[type, dict[str, Any]]] = {
    WebhookBody: {"url": "https://hooks.example.com/", "events": ["chat.done"], "profiles": []},
}


def made(api: Api) -> dict[str, str]:
    """A webhook of the user's."""
    answer = api.call("POST", "/v1/webhooks", BODIES[WebhookBody])
    assert answer.status == 201, answer
    return {"webhook_id": answer.json["webhook_id"]}
