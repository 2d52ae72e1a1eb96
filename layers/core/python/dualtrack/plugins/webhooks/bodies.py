"""The body that makes a webhook."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dualtrack.api.models import ProfileName, RequestBody, Text
from dualtrack.event_names import EventName  # noqa: TC001 - pydantic reads it
from dualtrack.plugins.webhooks.targets import MAX_URL


class WebhookBody(RequestBody):
    """Where to be told of what."""

    url: Annotated[
        Text,
        Field(
            min_length=9,
            max_length=MAX_URL,
            description="An https address of a public name, port 443 or 8443, without user and password.",
        ),
    ]
    events: Annotated[list[EventName], Field(min_length=1, max_length=5, description="What to be told of.")]
    profiles: list[ProfileName] = Field(
        default=[], max_length=100, description="Only chats of these agents; by default of all."
    )
