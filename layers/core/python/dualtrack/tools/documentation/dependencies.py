"""What the search needs: settings and clients, built once per container from the environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import httpx

from dualtrack.models.thinking import Thinking
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.tool_values import Injected
from dualtrack.tools.documentation.context7 import Context7
from dualtrack.tools.documentation.questions import Questions
from dualtrack.tools.documentation.settings import RetrievalSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.models.protocol import Model
    from dualtrack.settings import Settings
    from dualtrack.storage.cache import CacheStore
    from dualtrack.storage.stores import ToolStores
    from dualtrack.tool_values import ToolKind
    from dualtrack.tools.courses.library import CourseLibrary
    from dualtrack.tools.documentation.stages import StageLogger


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Settings and clients of the search. None means "not configured": without an embedder, only keywords rank; without
    questions, rules and the fused order decide; without a cache, everything is requested again.
    """

    context7: Context7
    logger: StageLogger
    embedder: Embedder | None = None
    questions: Questions | None = None
    cache: CacheStore | None = None
    settings: RetrievalSettings = field(default_factory=RetrievalSettings)
    loop: BackgroundLoop = field(default_factory=BackgroundLoop)

    def close(self) -> None:
        """Close every connection and the loop's thread."""
        self.loop.run(self._close_clients(), timeout=5)
        self.loop.close()

    async def _close_clients(self) -> None:
        await self.context7.close()
        if self.embedder:
            await self.embedder.close()


@dataclass(frozen=True, slots=True)
class SearchNeeds(Injected):
    """What the function `search` provides for its tools."""

    kind: ClassVar[ToolKind] = "search"

    documentation: Dependencies
    stores: ToolStores
    courses: CourseLibrary
    local: Embedder | None = None

    @property
    def embedder(self) -> Embedder | None:
        """For conversations and courses: Voyage's embedder if it has a key, else the local model."""
        return self.documentation.embedder or self.local


def build_dependencies(
    settings: Settings,
    *,
    model: Model | None,
    secret: Callable[[str], str],
    cache: CacheStore,
    logger: StageLogger,
    retrieval: RetrievalSettings | None = None,
) -> Dependencies:
    """The configured clients. ``model``: None if no model is asked. ``secret`` returns a secret by its id, empty if it
    is not set."""
    chosen = retrieval or RetrievalSettings()

    return Dependencies(
        context7=Context7(
            _context7_http(settings.context7_base_url, secret(settings.context7_secret)), chosen
        ),
        embedder=voyage_embedder(settings, secret(settings.voyage_secret)),
        questions=_questions(model, settings, chosen) if model else None,
        cache=cache,
        logger=logger,
        settings=chosen,
    )


def _questions(model: Model, settings: Settings, retrieval: RetrievalSettings) -> Questions:
    thinking = Thinking(settings.dualtrack_thinking_tokens)
    return Questions(model, settings.dualtrack_model, retrieval.claude_max_tokens, thinking)


def _context7_http(base_url: str, api_key: str) -> httpx.AsyncClient:
    """Follows no redirects. `Context7` adds the API's prefix, so it is cut from the address."""
    address = base_url.rstrip("/").removesuffix("/v2").removesuffix("/api")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.AsyncClient(base_url=address, headers=headers, follow_redirects=False, timeout=10)


def voyage_embedder(settings: Settings, api_key: str) -> Embedder | None:
    """Voyage's embeddings; None without a key."""
    if not api_key:
        return None
    from dualtrack.knowledge.voyage import VoyageEmbedder  # noqa: PLC0415 - half a second, if used

    return VoyageEmbedder(
        api_key,
        settings.voyage_base_url,
        settings.dualtrack_embedding_model,
    )
