"""Every 16th query's end: the search index of 16 queries becomes one item, with their vectors in another.

It is made after the chat is done, so it delays no answer. What is missing, because the step died or the queries have
too much text, the next search makes.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from dualtrack.chat.end_chat import is_searched
from dualtrack.errors import Contended, Degraded, Gone
from dualtrack.knowledge.int8 import to_int8
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.past_writes import write_while_alive
from dualtrack.storage.search_index import BLOCK, blocks_to_write
from dualtrack.tools.conversation.reading import made_now
from dualtrack.tools.conversation.spots import texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.knowledge.local_embedder import LocalEmbedder
    from dualtrack.memory.query_index import QueryIndex
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import ToolStores

_READ_SECONDS: Final = 5.0
_EMBED_SECONDS: Final = 20.0


def regroup(stores: ToolStores, chat: Chat, embedder: Callable[[], LocalEmbedder | None]) -> None:
    """Store the block that ends with this chat's query. ``embedder``: called if there is one to make; None if searches
    have another."""
    if chat.query % BLOCK or not is_searched(chat):
        return
    stores = stores.across(chat.ancestry)
    try:
        queries = _queries(stores, chat)
        if _is_block({number: len(index.words) for number, index in queries.items()}, chat):
            words = stores.search_index.words_writes(chat.user, chat.conversation_id, queries)
            write_while_alive(stores, chat, words)
            if (local := embedder()) is not None:
                write_while_alive(stores, chat, _vectors(stores, chat, local, queries))
    except (Contended, Degraded, Gone, ConditionFailed):
        return


def _is_block(sizes: Mapping[int, int], chat: Chat) -> bool:
    return any(len(group) == BLOCK for group in blocks_to_write(sizes, (), (), chat.query))


def _queries(stores: ToolStores, chat: Chat) -> dict[int, QueryIndex]:
    """The index of the block's queries, as far as there is time to make what is missing."""
    user, conversation_id, after = chat.user, chat.conversation_id, chat.query - BLOCK
    stored, _ = stores.search_index.words(user, conversation_id, chat.query + 1, after)
    missing = [number for number in range(after + 1, chat.query + 1) if number not in stored]
    return stored | dict(made_now(stores, user, conversation_id, missing, _READ_SECONDS))


def _vectors(
    stores: ToolStores, chat: Chat, embedder: LocalEmbedder, queries: Mapping[int, QueryIndex]
) -> list[Write]:
    """The vectors of the block's queries: those that searches have stored, and the others. Raises `Degraded`."""
    user, conversation_id, model = chat.user, chat.conversation_id, embedder.model
    index, until = stores.search_index, time.monotonic() + _EMBED_SECONDS
    known = dict(index.vectors(user, conversation_id, model, chat.query - BLOCK, chat.query + 1).queries)
    rest = {number: own for number, own in queries.items() if number not in known}
    texts = texts_of(stores, user, conversation_id, rest)
    flat = [text for own in texts.values() for text in own]
    made = iter(asyncio.run(embedder.embed(flat, "document", until - time.monotonic())) if flat else ())
    for number, own in texts.items():
        known[number] = to_int8([next(made) for _ in own])
    return index.vectors_writes(user, conversation_id, model, known)
