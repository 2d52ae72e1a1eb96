"""What the API and the terminal know of schedules."""

from types import MappingProxyType
from typing import Annotated, Final, NotRequired, TypedDict

from dualtrack.ids import IdForm
from dualtrack.plugin import Plugin


class ConversationFacets(TypedDict):
    """What a conversation has besides."""

    schedule_id: NotRequired[Annotated[str, "The schedule that began it, which may be deleted"]]


PLUGIN: Final = Plugin(
    ids=MappingProxyType(
        {
            "schedule_id": IdForm(
                "schedule",
                "sc_[0-9a-v]{26}",
                "sc_01jd8m3v5q0000000000000000",
                "The schedule",
                " `dualtrack schedules list` shows them.",
            )
        }
    ),
    events=("schedule.refused",),
    facets=MappingProxyType(dict.fromkeys(("Conversation", "ConversationRecords"), ConversationFacets)),
)
