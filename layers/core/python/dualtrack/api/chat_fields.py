"""Fields that plug-ins add to the body of ``POST /v1/chats`` (their ``chats.py``), and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from dualtrack.api.models import ChatBody
from dualtrack.plugin import values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.api.models import RequestBody
    from dualtrack.api.request import Request


@dataclass(frozen=True, slots=True)
class ChatFields:
    """``body`` has the fields; ``facets`` checks them and says what the chat and the conversation that it begins keep.
    It raises `ApiError`."""

    body: type[RequestBody]
    facets: Callable[[Request, Any], Mapping[str, str]]


@cache
def chat_body() -> type[ChatBody]:
    """The body with the fields of all plug-ins."""
    added = values("chats", ChatFields)
    fields: dict[str, Any] = {
        name: (field.annotation, field) for each in added for name, field in each.body.model_fields.items()
    }
    if not fields:
        return ChatBody
    extended: Any = create_model("ChatBody", __base__=ChatBody, __doc__=ChatBody.__doc__, **fields)
    return extended


def facets_of(request: Request, body: ChatBody) -> dict[str, str]:
    """What is kept of the plug-ins' fields."""
    return {
        name: value
        for each in values("chats", ChatFields)
        for name, value in each.facets(request, body).items()
    }
