"""What the API and the terminal know of collections."""

from types import MappingProxyType
from typing import Annotated, Final, NotRequired, TypedDict

from dualtrack.ids import IdForm
from dualtrack.plugin import Plugin


class ConversationFacets(TypedDict):
    """What a conversation has besides."""

    collections: NotRequired[
        Annotated[str, "The user's own collections that it may search: ids, divided by blanks"]
    ]


PLUGIN: Final = Plugin(
    ids=MappingProxyType(
        {
            "collection_id": IdForm(
                "collection",
                "col_[0-9a-v]{26}",
                "col_01jd8m3v5q0000000000000000",
                "The collection",
                " `dualtrack documents collections` shows them.",
            ),
            "doc_id": IdForm(
                "document",
                "doc_[0-9a-f]{26}",
                "doc_9f86d081884c7d659a2feaa0c5",
                "The document",
                " `dualtrack documents list` shows them.",
            ),
        }
    ),
    facets=MappingProxyType(dict.fromkeys(("Conversation", "ConversationRecords"), ConversationFacets)),
    profile_fields=MappingProxyType({"collections": (list[str], []), "own": (bool, False)}),
)
"""A document's id is not the core's ``document_id``, which has another form."""
