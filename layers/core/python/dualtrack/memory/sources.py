"""The sources of an answer."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dualtrack.memory.records import Record
    from dualtrack.tool_values import Source

MAX_SOURCES: Final = 100
"""Maximum number of sources in an answer: its event must fit in an item of 400 KB."""


def sources_of(records: Iterable[Record]) -> tuple[Source, ...]:
    """The distinct sources of a query's tool calls, in order of first use, at most `MAX_SOURCES`."""
    sources: dict[tuple[str, str], Source] = {}
    for record in records:
        for source in record.call.sources if record.call else ():
            sources.setdefault((source.title, source.url), replace(source, record_id=record.record_id))
    return tuple(itertools.islice(sources.values(), MAX_SOURCES))
