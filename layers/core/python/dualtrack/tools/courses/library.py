"""The current index in a function's memory, and the vectors of its queries."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import Degraded, Gone
from dualtrack.knowledge.array_file import BadIndex
from dualtrack.storage.vector_indexes import MAX_NEAREST, index_name
from dualtrack.tools.courses import vector_index
from dualtrack.tools.courses.index import load
from dualtrack.tools.courses.settings import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.runtime.background_loop import BackgroundLoop
    from dualtrack.runtime.log import Log
    from dualtrack.storage.corpora import CorpusStore, PublishedVersion
    from dualtrack.storage.vector_indexes import VectorIndexes
    from dualtrack.tools.courses.index import CourseIndex
    from dualtrack.tools.courses.settings import CourseSettings

CORPUS: Final = "courses"


@dataclass(slots=True)
class CourseLibrary:
    """One for each function instance. ``embedders`` by model: an index is searched with vectors of its own model, or
    with keywords."""

    store: CorpusStore
    embedders: Mapping[str, Embedder]
    loop: BackgroundLoop
    logger: Log
    settings: CourseSettings = DEFAULT
    clock: Callable[[], float] = time.monotonic
    vector_indexes: VectorIndexes | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _version: str = ""
    _index: CourseIndex | None = None
    _checked: float = float("-inf")

    def index(self) -> CourseIndex | None:
        """The published index, at most ``checked_every`` seconds old; None before the first is published.

        A new version replaces the old one when it has been read completely.
        """
        with self._lock:
            if self.clock() - self._checked >= self.settings.checked_every:
                self._swap()
                self._checked = self.clock()
            return self._index

    def vector(self, index: CourseIndex, text: str) -> bytes | None:
        """The text's vector from the index's model; None if there is none."""
        embedder = self.embedders.get(index.model)
        if embedder is None or self.settings.ranking == "keywords":
            return None
        seconds = self.settings.embed_seconds
        try:
            return self.loop.run(embedder.embed([text], "query", seconds), seconds + 1)[0]
        except (Degraded, TimeoutError) as error:
            self.logger.info("course search without meaning", extra={"reason": str(error)[:200]})
            return None

    def nearest(
        self, index: CourseIndex, vector: bytes | None, course_title: str | None, lesson_number: int | None
    ) -> Mapping[int, float] | None:
        """The rows nearest in meaning, with their cosines, from the S3 Vectors index. None if the index has its
        vectors itself, or if the call fails: only keywords rank then."""
        if self.vector_indexes is None or not index.vector_index or vector is None:
            return None
        try:
            return vector_index.nearest(
                self.vector_indexes, index, vector, course_title, lesson_number, MAX_NEAREST
            )
        except (ClientError, BotoCoreError) as error:
            self.logger.info("course search without meaning", extra={"reason": str(error)[:200]})
            return None

    def lacks_meaning(
        self, index: CourseIndex, vector: bytes | None, near: Mapping[int, float] | None
    ) -> bool:
        """Whether only keywords ranked although the index has vectors and the settings use them."""
        if self.settings.ranking == "keywords" or not index.model:
            return False
        is_separate = self.vector_indexes is not None and index.vector_index
        return vector is None or bool(is_separate and near is None)

    def _swap(self) -> None:
        """Read the current version if it has changed. If it cannot be read, the old one stays in use."""
        published = self.store.published(CORPUS)
        if published is None:
            self._version, self._index = "", None
        elif published.version != self._version:
            try:
                self._index = self._loaded(published)
                self._version = published.version
            except (Gone, BadIndex) as error:
                if self._index is None:
                    raise
                self.logger.info("course index not read", extra={"reason": str(error)[:200]})

    def _loaded(self, published: PublishedVersion) -> CourseIndex:
        """The index; without its vectors if an S3 Vectors index has them."""
        if published.head and self.vector_indexes is not None:
            data = self.store.index(CORPUS, published.version, published.head)
            return load(data, index_name(CORPUS, published.version))
        return load(self.store.index(CORPUS, published.version))
