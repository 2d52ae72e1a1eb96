"""What the search needs: settings and clients, built once per container from the environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import httpx

from dualtrack.models.thinking import Thinking, thinking_from
from dualtrack.tool_values import Provided
from dualtrack.tools.documentation.context7 import Context7
from dualtrack.tools.documentation.loop import BackgroundLoop
from dualtrack.tools.documentation.questions import Questions
from dualtrack.tools.documentation.settings import RetrievalSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.models.protocol import Model
    from dualtrack.storage.cache import CacheStore
    from dualtrack.storage.stores import SearchStores
    from dualtrack.tool_values import Kind
    from dualtrack.tools.courses.library import CourseLibrary
    from dualtrack.tools.documentation.embeddings import Embedder
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
class SearchNeeds(Provided):
    """What the function `search` provides for its tools."""

    kind: ClassVar[Kind] = "search"

    documentation: Dependencies
    stores: SearchStores
    courses: CourseLibrary
    local: Embedder | None = None

    @property
    def embedder(self) -> Embedder | None:
        """For conversations and courses: Voyage's embedder if it has a key, else the local model."""
        return self.documentation.embedder or self.local


@dataclass(frozen=True, slots=True)
class SearchEnvironment:
    """The function's environment, read once. It has the ids of secrets, not their values."""

    model: str = "claude-haiku-5-5"
    thinking: Thinking = field(default_factory=Thinking)
    voyage_base_url: str = ""
    voyage_secret: str = ""
    embedding_model: str = "voyage-3-large"
    context7_base_url: str = "https://context7.com"
    context7_secret: str = ""
    embed_function: str = ""
    course_ranking: str = ""


def search_environment(environ: Mapping[str, str]) -> SearchEnvironment:
    """An empty variable counts as not set."""
    defaults = SearchEnvironment()
    return SearchEnvironment(
        model=environ.get("DUALTRACK_MODEL") or defaults.model,
        thinking=thinking_from(environ.get("DUALTRACK_THINKING_TOKENS", ""), ""),
        voyage_base_url=environ.get("VOYAGE_BASE_URL", ""),
        voyage_secret=environ.get("VOYAGE_SECRET", ""),
        embedding_model=environ.get("DUALTRACK_EMBEDDING_MODEL") or defaults.embedding_model,
        context7_base_url=environ.get("CONTEXT7_BASE_URL") or defaults.context7_base_url,
        context7_secret=environ.get("CONTEXT7_SECRET", ""),
        embed_function=environ.get("EMBED_FUNCTION", ""),
        course_ranking=environ.get("DUALTRACK_COURSE_RANKING", ""),
    )


def build_dependencies(
    environment: SearchEnvironment,
    *,
    model: Model | None,
    secret: Callable[[str], str],
    cache: CacheStore,
    logger: StageLogger,
    settings: RetrievalSettings | None = None,
) -> Dependencies:
    """The configured clients. ``model``: None if no model is asked. ``secret`` returns a secret by its id, empty if it
    is not set."""
    chosen = settings or RetrievalSettings()

    return Dependencies(
        context7=Context7(
            _context7_http(environment.context7_base_url, secret(environment.context7_secret)), chosen
        ),
        embedder=voyage_embedder(environment, secret(environment.voyage_secret), chosen),
        questions=_questions(model, environment, chosen) if model else None,
        cache=cache,
        logger=logger,
        settings=chosen,
    )


def _questions(model: Model, environment: SearchEnvironment, settings: RetrievalSettings) -> Questions:
    return Questions(model, environment.model, settings.claude_max_tokens, environment.thinking)


def _context7_http(base_url: str, api_key: str) -> httpx.AsyncClient:
    """Follows no redirects. `Context7` adds the API's prefix, so it is cut from the address."""
    address = base_url.rstrip("/").removesuffix("/v2").removesuffix("/api")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.AsyncClient(base_url=address, headers=headers, follow_redirects=False, timeout=10)


def voyage_embedder(
    environment: SearchEnvironment, api_key: str, settings: RetrievalSettings | None = None
) -> Embedder | None:
    """Voyage's embeddings; None without a key."""
    if not api_key:
        return None
    from dualtrack.tools.documentation.embeddings import VoyageEmbedder  # noqa: PLC0415 - half a second, if used

    return VoyageEmbedder(
        api_key, environment.voyage_base_url, environment.embedding_model, settings or RetrievalSettings()
    )
