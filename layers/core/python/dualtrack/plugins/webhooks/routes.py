"""/v1/webhooks: who is told what happens to the user's chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api.models import RotationBody
from dualtrack.api.parameters import CURSOR, LIMIT
from dualtrack.api.route import Accepted, Created, NoContent, Ok, Route
from dualtrack.plugins.webhooks import bodies, manage
from dualtrack.plugins.webhooks.signing import WebhookSecrets
from dualtrack.plugins.webhooks.store import webhooks_of

if TYPE_CHECKING:
    from dualtrack.api.request import Request
    from dualtrack.plugins.webhooks import types

WEBHOOKS: Final = "/v1/webhooks"
WEBHOOK: Final = f"{WEBHOOKS}/{{webhook_id}}"


@Route(
    "post",
    WEBHOOKS,
    "Make a webhook",
    bodies.WebhookBody,
    scopes=("hooks",),
    for_owner=True,
    description="The answer has its secret, once. A user has at most 10. Chats that run are not told of.",
)
def post_webhook(request: Request) -> Created[types.NewWebhook]:
    made = manage.make_webhook(
        request.stores,
        _secrets(request),
        request.user,
        request.body(bodies.WebhookBody),
        loopback=request.services.settings.dualtrack_webhook_loopback,
    )
    return Created(made)


def _secrets(request: Request) -> WebhookSecrets:
    return WebhookSecrets(request.services.kms, request.services.settings.connections_key)


@Route(
    "get",
    WEBHOOKS,
    "List the webhooks",
    scopes=("hooks",),
    for_owner=True,
    description="With when one was disabled, and why; never a secret.",
)
def get_webhooks(request: Request) -> Ok[types.Webhooks]:
    listed = [manage.webhook_json(webhook) for webhook in webhooks_of(request.stores).of(request.user)]
    body: types.Webhooks = {"webhooks": listed}
    return Ok(body)


@Route(
    "post",
    f"{WEBHOOK}/test",
    "Send a test to a webhook",
    scopes=("hooks",),
    for_owner=True,
    description="It is sent within a minute, and what came back is in the list of deliveries. One that arrives enables "
    "a disabled webhook again.",
)
def post_webhook_test(request: Request, webhook_id: str) -> Accepted[types.Delivery]:
    return Accepted(manage.send_test(request.stores, request.user, webhook_id))


@Route(
    "post",
    f"{WEBHOOK}/rotate",
    "Give a webhook a new secret",
    RotationBody,
    scopes=("hooks",),
    for_owner=True,
    description="The answer has it, once. Deliveries have a signature by the old one as well for `overlap` seconds "
    "more, at most 24 hours.",
)
def post_webhook_rotation(request: Request, webhook_id: str) -> Ok[types.NewWebhook]:
    overlap = request.body(RotationBody).overlap
    rotated = manage.rotate_secret(request.stores, _secrets(request), request.user, webhook_id, overlap)
    return Ok(rotated)


@Route(
    "get",
    f"{WEBHOOK}/deliveries",
    "List what a webhook was told",
    parameters=(CURSOR, LIMIT),
    scopes=("hooks",),
    for_owner=True,
    description="The newest first, for seven days, with what came back.",
)
def get_deliveries(request: Request, webhook_id: str) -> Ok[types.Deliveries]:
    cursor, limit = request.value(CURSOR), request.value(LIMIT)
    webhook = webhooks_of(request.stores).find(request.user, webhook_id)
    page = webhooks_of(request.stores).deliveries(webhook, cursor, limit)
    body: types.Deliveries = {
        "deliveries": [manage.delivery_json(delivery) for delivery in page.items],
        **page.rest,
    }
    return Ok(body)


@Route(
    "delete",
    WEBHOOK,
    "Delete a webhook",
    scopes=("hooks",),
    for_owner=True,
    description="With what waits for it, and the list of its deliveries.",
)
def delete_webhook(request: Request, webhook_id: str) -> NoContent:
    webhooks_of(request.stores).remove(request.user, webhook_id)
    return NoContent()
