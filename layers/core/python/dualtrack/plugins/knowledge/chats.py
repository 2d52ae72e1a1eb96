"""``collections`` of ``POST /v1/chats``: the user's own that a new conversation may search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from dualtrack.api.chat_fields import ChatFields
from dualtrack.api.models import RequestBody
from dualtrack.corpora.owned import owned_in
from dualtrack.errors import invalid_request
from dualtrack.plugins.knowledge.limits import COLLECTIONS
from dualtrack.plugins.knowledge.names import KIND, OF_THE_CHAT

if TYPE_CHECKING:
    from dualtrack.api.request import Request


class KnowledgeFields(RequestBody):
    """What is searched besides what the agent names."""

    collections: Annotated[
        list[Annotated[str, Field(pattern="^col_[0-9a-v]{26}$")]],
        Field(
            default_factory=list,
            max_length=COLLECTIONS,
            description="The user's own collections that a new conversation may search, if its agent has the tool.",
        ),
    ]


def _facets(request: Request, body: Any) -> dict[str, str]:
    if not body.collections:
        return {}
    if body.conversation_id:
        raise invalid_request("collections: a conversation has those that its first message named.")
    own = {found.corpus for found in owned_in(request.stores).of(request.user, KIND)}
    for place, wanted in enumerate(body.collections):
        if wanted not in own:
            raise invalid_request(f"collections.{place}: you have no such collection.")
    return {OF_THE_CHAT: " ".join(dict.fromkeys(body.collections))}


FIELDS: Final = ChatFields(KnowledgeFields, _facets)
