"""What the search needs: settings and clients, made once of what the function `search` gives its tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import httpx

from dualtrack.models.thinking import Thinking
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.runtime.secrets import secret
from dualtrack.tools.documentation.context7 import Context7
from dualtrack.tools.documentation.questions import Questions
from dualtrack.tools.documentation.settings import RetrievalSettings

if TYPE_CHECKING:
    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.models.protocol import Model
    from dualtrack.runtime.log import Log
    from dualtrack.settings import Settings
    from dualtrack.storage.cache import CacheStore
    from dualtrack.tools.search_needs import SearchNeeds


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Settings and clients of the search. None means "not configured": without an embedder, only keywords rank; without
    questions, rules and the fused order decide; without a cache, everything is requested again.
    """

    context7: Context7
    logger: Log
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


def dependencies_for(needs: SearchNeeds) -> Dependencies:
    """The clients for the current keys."""
    return kept_dependencies(needs, secret(needs.settings.context7_secret))


@lru_cache(maxsize=1)
def kept_dependencies(needs: SearchNeeds, context7_key: str) -> Dependencies:
    """Once per container, and again when a key has changed."""
    return build_dependencies(needs, context7_key)


def build_dependencies(
    needs: SearchNeeds, context7_key: str, retrieval: RetrievalSettings | None = None
) -> Dependencies:
    """The configured clients. Embeddings are Voyage's or none."""
    settings, chosen = needs.settings, retrieval or RetrievalSettings()
    return Dependencies(
        context7=Context7(_context7_http(needs, context7_key), chosen),
        embedder=needs.voyage,
        questions=_questions(needs.model, settings, chosen) if needs.model else None,
        cache=needs.stores.cache,
        logger=needs.logger,
        settings=chosen,
        loop=needs.loop,
    )


def _questions(model: Model, settings: Settings, retrieval: RetrievalSettings) -> Questions:
    thinking = Thinking(settings.dualtrack_thinking_tokens)
    return Questions(model, settings.dualtrack_model, retrieval.claude_max_tokens, thinking)


def _context7_http(needs: SearchNeeds, api_key: str) -> httpx.AsyncClient:
    """Follows no redirects. `Context7` adds the API's prefix, so it is cut from the address."""
    address = needs.settings.context7_base_url.rstrip("/").removesuffix("/v2").removesuffix("/api")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.AsyncClient(
        base_url=address, headers=headers, follow_redirects=False, timeout=10, transport=needs.transport
    )
