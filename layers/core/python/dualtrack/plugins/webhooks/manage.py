"""Making, listing, testing and deleting webhooks (CONTRACT 4)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from dualtrack.clock import iso
from dualtrack.errors import ApiError
from dualtrack.ids import sortable
from dualtrack.notices import Notice
from dualtrack.plugins.webhooks.signing import new_secret
from dualtrack.plugins.webhooks.store import webhooks_of
from dualtrack.plugins.webhooks.targets import check_url
from dualtrack.plugins.webhooks.values import TRIAL, Webhook
from dualtrack.profiles import profile_named
from dualtrack.storage.dynamo import ConditionFailed, until_kept

if TYPE_CHECKING:
    from dualtrack.plugins.webhooks import types
    from dualtrack.plugins.webhooks.bodies import WebhookBody
    from dualtrack.plugins.webhooks.signing import WebhookSecrets
    from dualtrack.plugins.webhooks.values import Delivery
    from dualtrack.storage.stores import ApiStores


def webhook_json(webhook: Webhook) -> types.Webhook:
    """A webhook as its owner sees it."""
    return {
        "webhook_id": webhook.webhook_id,
        "url": webhook.url,
        "events": webhook.events,
        "profiles": webhook.profiles,
        "created_at": iso(webhook.created_at),
        "failing_since": iso(webhook.failing_since) if webhook.failing_since else None,
        "disabled_at": iso(webhook.disabled_at) if webhook.disabled_at else None,
        "disabled_because": webhook.disabled_because or None,
    }


def delivery_json(delivery: Delivery) -> types.Delivery:
    """A delivery as its webhook's owner sees it."""
    return {
        "message_id": delivery.message_id,
        "type": delivery.type,
        "at": iso(delivery.at / 1000),
        "status": delivery.status,
        "attempts": delivery.attempts,
        "tried_at": iso(delivery.tried_at) if delivery.tried_at else None,
        "next_at": iso(delivery.next_at) if delivery.next_at else None,
        "answer": delivery.answer or None,
        "error": delivery.error or None,
        "milliseconds": delivery.milliseconds,
    }


def make_webhook(
    stores: ApiStores, sealed: WebhookSecrets, owner: str, body: WebhookBody, *, loopback: bool
) -> types.NewWebhook:
    """A new webhook. Raises 400; 401 if the owner is erased meanwhile."""
    check_url(body.url, loopback=loopback)
    for profile in body.profiles:
        profile_named(profile)
    webhook_id, secret = new_webhook_id(), new_secret()
    webhook = Webhook(
        webhook_id,
        owner,
        body.url,
        tuple(dict.fromkeys(body.events)),
        sealed.seal(webhook_id, secret),
        int(stores.clock()),
        profiles=tuple(dict.fromkeys(body.profiles)),
    )
    try:
        webhooks_of(stores).make(webhook, [stores.deletions.not_refused(owner)])
    except ConditionFailed as lost:
        raise ApiError("unauthorized", "This user was erased.") from lost
    return {**webhook_json(webhook), "secret": secret}


def rotate_secret(
    stores: ApiStores, sealed: WebhookSecrets, owner: str, webhook_id: str, overlap: int
) -> types.NewWebhook:
    """The webhook with a new secret; deliveries are signed with the old one too for ``overlap`` seconds more. Raises
    404."""

    def rotate() -> types.NewWebhook:
        webhook, secret = webhooks_of(stores).find(owner, webhook_id), new_secret()
        until = int(stores.clock()) + overlap
        rotated = webhooks_of(stores).rotate(webhook, sealed.seal(webhook_id, secret), until)
        return {**webhook_json(rotated), "secret": secret}

    return until_kept(rotate, "The webhook was rotated too often.")


def send_test(stores: ApiStores, owner: str, webhook_id: str) -> types.Delivery:
    """Send a webhook something to see that it arrives. Raises 404."""
    webhook = webhooks_of(stores).find(owner, webhook_id)
    notice = trial_notice(webhook_id, f"msg_test_{secrets.token_hex(10)}", stores.clock())
    return delivery_json(webhooks_of(stores).send(webhook, notice))


def new_webhook_id() -> str:
    """``wh_…``, sortable by time."""
    return f"wh_{sortable()}"


def trial_notice(webhook_id: str, message_id: str, now: float) -> Notice:
    """What its owner sends to see that it arrives."""
    return Notice(message_id, TRIAL, int(now * 1000), {"webhook_id": webhook_id})
