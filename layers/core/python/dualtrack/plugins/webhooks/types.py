"""The answers about webhooks, in the form of `dualtrack.answers`; loaded for their documentation alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from dualtrack.answers import Count, ListPage, Time
from dualtrack.event_names import EVENT_NAMES, EventName
from dualtrack.plugins.webhooks.values import TRIAL, DeliveryStatus

if TYPE_CHECKING:
    NoticeName = str
else:
    NoticeName = Literal[(*EVENT_NAMES, TRIAL)]
    """The type of a delivery."""


class Webhook(TypedDict):
    """A webhook, without its secret."""

    webhook_id: Annotated[str, "Its id"]
    url: Annotated[str, "Where it leads"]
    events: Annotated[Sequence[EventName], "What it is told of"]
    profiles: Annotated[Sequence[str], "Only chats of these agents; none: all"]
    created_at: Annotated[Time, "When it was made"]
    failing_since: Annotated[Time | None, "Since when no delivery has arrived; null: the last one has"]
    disabled_at: Annotated[Time | None, "When it was disabled, until a test arrives; null: it is not"]
    disabled_because: Annotated[str | None, "Why it was disabled"]


class NewWebhook(Webhook):
    """A webhook with its secret, which is shown this once."""

    secret: Annotated[str, "The secret, whsec_…: it cannot be shown again"]


class Webhooks(TypedDict):
    """The webhooks of a user."""

    webhooks: Annotated[Sequence[Webhook], "The oldest first"]


class Delivery(TypedDict):
    """Something that a webhook is told, and what came back."""

    message_id: Annotated[str, "The header webhook-id, the same at each attempt"]
    type: Annotated[NoticeName, "What it tells"]
    at: Annotated[Time, "When that happened"]
    status: Annotated[DeliveryStatus, "`failed`: given up after four days"]
    attempts: Annotated[Count, "Attempts so far"]
    tried_at: Annotated[Time | None, "The last attempt; null: there was none"]
    next_at: Annotated[Time | None, "When it is tried next; null: no more"]
    answer: Annotated[Count | None, "The HTTP status of the last attempt; null: there was no answer"]
    error: Annotated[str | None, "Why it did not arrive, unless the status says it"]
    milliseconds: Annotated[Count, "How long the last attempt took"]


class Deliveries(ListPage):
    """A page of what a webhook was told."""

    deliveries: Annotated[Sequence[Delivery], "The newest first, for seven days"]
