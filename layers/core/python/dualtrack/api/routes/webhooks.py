"""/v1/webhooks: who is told what happens to the user's chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import models, webhooks
from dualtrack.api.parameters import CURSOR, LIMIT
from dualtrack.api.route import Accepted, Created, NoContent, Ok, Route
from dualtrack.storage.webhooks import webhooks_of

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request

WEBHOOKS: Final = "/v1/webhooks"
WEBHOOK: Final = f"{WEBHOOKS}/{{webhook_id}}"


@Route(
    "post",
    WEBHOOKS,
    "Make a webhook",
    models.WebhookBody,
    scopes=("hooks",),
    for_owner=True,
    description="The answer has its secret, once. A user has at most 10. Chats that run are not told of.",
)
def post_webhook(request: Request) -> Created[answers.NewWebhook]:
    services = request.services
    made = webhooks.make_webhook(
        request.stores,
        services.secrets,
        request.user,
        request.body(models.WebhookBody),
        loopback=services.webhook_loopback,
    )
    return Created(made)


@Route(
    "get",
    WEBHOOKS,
    "List the webhooks",
    scopes=("hooks",),
    for_owner=True,
    description="With when one was disabled, and why; never a secret.",
)
def get_webhooks(request: Request) -> Ok[answers.Webhooks]:
    listed = [webhooks.webhook_json(webhook) for webhook in webhooks_of(request.stores).of(request.user)]
    body: answers.Webhooks = {"webhooks": listed}
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
def post_webhook_test(request: Request, webhook_id: str) -> Accepted[answers.Delivery]:
    return Accepted(webhooks.send_test(request.stores, request.user, webhook_id))


@Route(
    "post",
    f"{WEBHOOK}/rotate",
    "Give a webhook a new secret",
    models.RotationBody,
    scopes=("hooks",),
    for_owner=True,
    description="The answer has it, once. Deliveries have a signature by the old one as well for `overlap` seconds "
    "more, at most 24 hours.",
)
def post_webhook_rotation(request: Request, webhook_id: str) -> Ok[answers.NewWebhook]:
    overlap = request.body(models.RotationBody).overlap
    rotated = webhooks.rotate_secret(
        request.stores, request.services.secrets, request.user, webhook_id, overlap
    )
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
def get_deliveries(request: Request, webhook_id: str) -> Ok[answers.Deliveries]:
    cursor, limit = request.value(CURSOR), request.value(LIMIT)
    webhook = webhooks_of(request.stores).find(request.user, webhook_id)
    page = webhooks_of(request.stores).deliveries(webhook, cursor, limit)
    body: answers.Deliveries = {
        "deliveries": [webhooks.delivery_json(delivery) for delivery in page.items],
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
