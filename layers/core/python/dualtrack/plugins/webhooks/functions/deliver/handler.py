"""Tells webhooks what has happened; runs every minute."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from dataclasses import asdict
    from typing import TYPE_CHECKING, Any, Final

    from aws_lambda_powertools import Logger
    from dualtrack import __version__
    from dualtrack.plugins.webhooks.deliver import Deliverer
    from dualtrack.plugins.webhooks.event_bus import EventBus
    from dualtrack.plugins.webhooks.post import Poster
    from dualtrack.plugins.webhooks.signing import WebhookSecrets
    from dualtrack.plugins.webhooks.store import webhooks_of
    from dualtrack.runtime.clients import LazyClient
    from dualtrack.runtime.metrics import count
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import NoticeStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.notices import Notice

logger = Logger()
settings = settings_from()
stores = open_stores(settings, NoticeStores)
kms: Any = LazyClient("kms")
events: Any = LazyClient("events")

RUN_SECONDS: Final = 50
"""The next run comes after a minute."""


def _disabled() -> None:
    count("WebhooksDisabled")


def _copied(notices: Sequence[Notice]) -> Collection[str]:
    if not settings.dualtrack_event_bus:
        return ()
    failed = EventBus(events, settings.dualtrack_event_bus).put(notices)
    if failed:
        count("EventCopiesFailed", len(failed))
        logger.warning("The event bus did not take all", bus=settings.dualtrack_event_bus, events=len(failed))
    return failed


deliverer = Deliverer(
    webhooks_of(stores),
    WebhookSecrets(kms, settings.connections_key),
    Poster(loopback=settings.dualtrack_webhook_loopback),
    f"dualtrack/{__version__}",
    _disabled,
    _copied,
)


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Returns what was done: ``{"notices", "delivered", "failed"}``."""
    done = asdict(deliverer.run(RUN_SECONDS))
    if any(done.values()):
        logger.info("Delivered", **done)
    return done
