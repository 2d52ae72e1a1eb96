"""The sources of an answer."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.memory.used_sources import used_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dualtrack.memory.records import Record
    from dualtrack.tool_values import Source

MAX_SOURCES: Final = 100
"""Maximum number of sources in an answer: its event must fit in an item of 400 KB."""


def sources_of(records: Iterable[Record]) -> tuple[Source, ...]:
    """The sources of a query's answer: of those that its tool calls returned, the ones that it has used. Until it is
    recorded, all of them."""
    listed = tuple(records)
    unused = {place for record in listed for place in record.unused}
    return tuple(source for place, source in enumerate(returned_sources(listed)) if place not in unused)


def returned_sources(records: Iterable[Record]) -> tuple[Source, ...]:
    """The distinct sources of a query's tool calls, in order of first use, at most `MAX_SOURCES`."""
    sources: dict[tuple[str, str], Source] = {}
    for record in records:
        for source in record.call.sources if record.call else ():
            sources.setdefault((source.title, source.url), replace(source, record_id=record.record_id))
    return tuple(itertools.islice(sources.values(), MAX_SOURCES))


def unused_sources(records: Iterable[Record], question: str, answer: str) -> tuple[int, ...]:
    """The places of those in `returned_sources` that an answer has not used, as `Record.unused` has them. A source of
    several results is used if a passage of any of them is. An answer of which nothing can be told has the best source
    of each result: those far from the question were not returned."""
    listed = tuple(records)
    passages: dict[tuple[str, str], list[str]] = {}
    for record in listed:
        for source in record.call.sources if record.call else ():
            texts = passages.setdefault((source.title, source.url), [])
            texts += [record.content[start:end] for start, end in source.passages]
    if not any(passages.values()):
        return ()
    returned = [(source.title, source.url) for source in returned_sources(listed)]
    titles, texts_of = [title for title, _ in returned], [passages[source] for source in returned]
    used = used_sources(question, answer, titles, texts_of)
    if answer.strip() and not used:
        best = {(source.title, source.url) for source in _best_of_each(listed)}
        used = frozenset(place for place, source in enumerate(returned) if source in best)
    return tuple(place for place in range(len(returned)) if place not in used)


def _best_of_each(records: Iterable[Record]) -> Iterator[Source]:
    """The best source of each result."""
    for record in records:
        yield from record.call.sources[:1] if record.call else ()
