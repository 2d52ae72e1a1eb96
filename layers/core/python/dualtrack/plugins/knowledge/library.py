"""The collections that a chat may search, and their indexes in a function's memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dualtrack.errors import Degraded, Gone
from dualtrack.plugins.knowledge.index import load
from dualtrack.plugins.knowledge.names import KIND, OF_THE_CHAT, document_id
from dualtrack.profiles import ON
from dualtrack.storage.conversations import ConversationStore
from dualtrack.storage.owned_corpora import OwnedCorpora
from dualtrack.text import folded_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.plugins.knowledge.index import DocumentIndex
    from dualtrack.storage.corpora import CorpusStore
    from dualtrack.storage.owned_corpora import OwnedCorpus
    from dualtrack.tools.running import Running
    from dualtrack.tools.search_needs import SearchNeeds

OF_THE_STAGE: Final = "collections"
"""The option by which a profile names the stage's, a line for each."""
OWN: Final = "own"
"""The option by which all of the user's own are searched."""

MEMORY: Final = 400_000_000
"""Bytes of indexes that an instance keeps."""

_EMBED_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A collection with its current index."""

    collection: OwnedCorpus
    index: DocumentIndex

    def document_id(self, at: int) -> str:
        """Of the document at a position."""
        return document_id(self.collection.corpus, self.index.titles[at])


@dataclass(slots=True)
class Library:
    """One for each function instance. What was used last is kept."""

    store: CorpusStore
    owned: OwnedCorpora
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: OrderedDict[str, tuple[str, DocumentIndex]] = field(default_factory=OrderedDict)

    def opened(self, collections: Sequence[OwnedCorpus]) -> list[Opened]:
        """Those of the collections that have documents."""
        found = ((collection, self._index(collection.corpus)) for collection in collections)
        return [Opened(collection, index) for collection, index in found if index is not None]

    def _index(self, corpus: str) -> DocumentIndex | None:
        for _ in range(3):
            published = self.store.published(corpus)
            if published is None:
                return None
            with self._lock:
                kept = self._kept.get(corpus)
                if kept and kept[0] == published.version:
                    self._kept.move_to_end(corpus)
                    return kept[1]
            try:
                index = load(self.store.index(corpus, published.version))
            except Gone:
                continue  # it was replaced meanwhile
            self._keep(corpus, published.version, index)
            return index
        return None

    def _keep(self, corpus: str, version: str, index: DocumentIndex) -> None:
        with self._lock:
            self._kept[corpus] = version, index
            self._kept.move_to_end(corpus)
            while len(self._kept) > 1 and sum(kept.size for _, kept in self._kept.values()) > MEMORY:
                self._kept.popitem(last=False)


@lru_cache(maxsize=1)
def library_of(needs: SearchNeeds) -> Library:
    """The library over a function instance's clients."""
    store = needs.courses.store
    return Library(store, OwnedCorpora(store.dynamodb, store.table))


def allowed(library: Library, running: Running, needs: SearchNeeds) -> list[OwnedCorpus]:
    """What the chat's agent and its conversation let it search. Names that are there no more are left out."""
    options: Mapping[str, object] = running.call.spec
    names = {folded_name(name) for name in str(options.get(OF_THE_STAGE, "")).splitlines() if name.strip()}
    shared = (
        [found for found in library.owned.of("", KIND) if folded_name(found.name) in names] if names else []
    )
    history = needs.stores.history
    conversations = ConversationStore(history.client, history.table)
    conversation = conversations.find(running.user, running.conversation_id)
    added = conversation.facets.get(OF_THE_CHAT, "").split() if conversation else []
    takes_all = options.get(OWN) == ON
    own = library.owned.of(running.user, KIND) if takes_all or added else []
    return [*shared, *(found for found in own if takes_all or found.corpus in added)]


def vector_of(needs: SearchNeeds, model: str, text: str) -> bytes | None:
    """The text's vector from this model; None if there is none now."""
    embedder = needs.courses.embedders.get(model)
    if embedder is None or needs.courses.settings.ranking == "keywords":
        return None
    try:
        return needs.loop.run(embedder.embed([text], "query", _EMBED_SECONDS), _EMBED_SECONDS + 1)[0]
    except (Degraded, TimeoutError) as error:
        needs.logger.info("document search without meaning", extra={"reason": str(error)[:200]})
        return None
