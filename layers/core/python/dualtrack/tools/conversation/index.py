"""The index of a conversation: what was stored when its queries ended, and what this search adds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.errors import ChatClosed, Contended
from dualtrack.storage.past_writes import write_past
from dualtrack.storage.search_index import blocks_to_write
from dualtrack.tools.conversation.reading import made_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dualtrack.memory.passages import Passage
    from dualtrack.memory.query_index import QueryIndex
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.search_index import StoredIndex
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tools.conversation.settings import ConversationSearch
    from dualtrack.tools.running import Running

_KEPT_AT_ONCE: Final = 48
"""Maximum items of a transaction, which may have 100 actions and 4 MB."""


@dataclass(frozen=True, slots=True)
class ConversationIndex:
    """The queries to search, by number, in order. Those up to ``after`` were left out because of the limits;
    ``unread``: those that the next search adds; ``last``: the last one before the running query."""

    queries: Mapping[int, QueryIndex]
    after: int
    unread: Sequence[int]
    last: int

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages of all records."""
        return tuple(passage for index in self.queries.values() for passage in index.passages)


def up_to_date(stores: ToolStores, running: Running, settings: ConversationSearch) -> ConversationIndex:
    """The index of all queries before the running one, within the limits of the settings.

    All their summaries exist: the first turn of the running query ensures it (`query_state`).
    """
    user, conversation_id, last = running.user, running.conversation_id, running.chat.query - 1
    stores = stores.across(running.chat.ancestry)
    stored, found = stores.search_index.words(user, conversation_id, last + 1)
    missing = [number for number in range(found.after + 1, last + 1) if number not in stored]
    wanted = missing[: settings.queries]
    added = dict(made_now(stores, user, conversation_id, wanted, settings.read_seconds)) if wanted else {}
    queries = dict(sorted({**stored, **added}.items()))
    _keep_words(stores, running, queries, found, added)
    return ConversationIndex(
        queries, found.after, [number for number in missing if number not in added], last
    )


def _keep_words(
    stores: ToolStores,
    running: Running,
    queries: Mapping[int, QueryIndex],
    found: StoredIndex,
    added: Iterable[int],
) -> None:
    """Store what this search has added, and blocks that no earlier step has regrouped."""
    sizes = {number: len(index.words) for number, index in queries.items()}
    groups = blocks_to_write(sizes, found.blocks, {*added}, running.chat.query - 1)
    keep(
        stores,
        running,
        (
            stores.search_index.words_writes(
                running.user, running.conversation_id, {number: queries[number] for number in group}
            )
            for group in groups
        ),
    )


def keep(stores: ToolStores, running: Running, items: Iterable[Sequence[Write]]) -> None:
    """Store the writes of these items while the chat runs; what is not stored is computed again by the next search."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, _KEPT_AT_ONCE)):
        try:
            write_past(stores, running.chat, [write for writes in batch for write in writes])
        except (ChatClosed, Contended):
            return
