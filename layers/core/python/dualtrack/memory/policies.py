"""How the past of a conversation is sent: policies by name, which profiles choose (DESIGN 5).

A policy is a pure function. The prefix rule of CONTRACT 6 holds for ``dual_track``, because every past query
contributes its immutable `QueryTrack` in the words in which it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.ids import query_id
from dualtrack.profiles import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.memory.records import Block, QueryTrack

Message = dict[str, Any]
Policy = Callable[["Sequence[QueryTrack]", str], list[list[Message]]]
"""The past queries, oldest first, and the profile's ``query_template`` → messages, one list for each query that is sent."""


def dual_track(tracks: Sequence[QueryTrack], template: str) -> list[list[Message]]:
    """The query and its tool summaries in the user's role, the response's summary in the assistant's."""
    return [_track_messages(track, template) for track in tracks]


POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({"dual_track": dual_track})
"""A policy that stands here can be named by a profile."""


def asked(query: Block, template: str) -> Block:
    """A query's block as the model reads it: in the template, behind its id."""
    return replace(query, content=template.replace(PLACEHOLDER, query.content))


def text_block(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


def user_message(content: list[dict[str, Any]]) -> Message:
    """Blocks in the user's role."""
    return {"role": "user", "content": content}


def _track_messages(track: QueryTrack, template: str) -> list[Message]:
    own = query_id(track.query)
    blocks = [asked(block, template) if block.record_id == own else block for block in track.blocks]
    said_to = [text_block(block.text) for block in blocks if block.role == "user"]
    said = [text_block(block.text) for block in blocks if block.role == "assistant"]
    return [user_message(said_to), {"role": "assistant", "content": said}]
