"""What is sent after the model's service has refused a request for its files: all but the file that it named, or none.

Pure. In place of a file that is left out stands a line of text, so every other block stays where it was, and what
precedes it stays a cached prefix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.memory.blocks import is_file, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.memory.blocks import Message
    from dualtrack.memory.sending import RefusedFile
    from dualtrack.memory.view import View
    from dualtrack.models.refusals import BlockPlace

MOST_NAMED: Final = 5
"""Files of a query that are left out one by one: each costs a request. After that all are left out."""


def without_files(view: View) -> View:
    """The view with a note in place of all files."""
    cuts = replace(view.cuts, without_files=True)
    return _with_thinking(replace(view, cuts=cuts), is_kept=not view.turns)


def without_file(view: View, messages: Sequence[Message], place: BlockPlace | None) -> View | None:
    """The view with a line in place of the file at this place of its messages; None if no file of it is there, or if
    too many were named before."""
    refused = _file_at(view, messages, place) if place else None
    if refused is None or len(view.cuts.refused) >= MOST_NAMED:
        return None
    cuts = replace(view.cuts, refused=view.cuts.refused | {refused})
    newest = {call.id for call in view.turns[-1].calls} if view.turns else {view.query.record_id}
    return _with_thinking(replace(view, cuts=cuts), is_kept=refused[0] in newest)


def _with_thinking(view: View, *, is_kept: bool) -> View:
    """Thinking is dropped if what preceded it changes: the service would refuse it."""
    return view if is_kept else replace(view, cuts=replace(view.cuts, without_thinking=True))


def _file_at(view: View, messages: Sequence[Message], place: BlockPlace) -> RefusedFile | None:
    """The record of the file, and its number there: files follow the texts of the query, or the text of a result."""
    block = _at(messages[place.message]["content"], place.block) if place.message < len(messages) else None
    if block is None:
        return None
    if place.part is None:
        return (view.query.record_id, place.block - 1 - len(view.files)) if is_file(block) else None
    part = _at(parts_of(block), place.part)
    if part is None or not is_file(part):
        return None
    calls = (call for turn in view.turns for call in turn.calls)
    return next((call.id, place.part - 1) for call in calls if call.tool_use_id == block["tool_use_id"])


def _at(blocks: Sequence[Mapping[str, Any]], index: int) -> Mapping[str, Any] | None:
    return blocks[index] if index < len(blocks) else None
