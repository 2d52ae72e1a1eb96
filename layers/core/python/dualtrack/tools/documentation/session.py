"""A search in progress: its dependencies, its stages, and what it reads from and writes to the cache."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dualtrack.errors import Degraded
from dualtrack.tools.documentation.cache import packed_page, response_key, unpacked_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.tools.documentation.context7 import FetchedPage
    from dualtrack.tools.documentation.dependencies import Dependencies
    from dualtrack.tools.documentation.stages import Stages


@dataclass(slots=True)
class Session:
    """``healthy`` becomes False if a stage fails: the result is then not cached for the question, so that the next
    search can do better. ``rerank``: whether Claude ranks the sections.
    """

    deps: Dependencies
    stages: Stages
    rerank: bool = True
    healthy: bool = True
    has_documentation: bool = True
    """False if Context7 failed or was too slow. A missing library is a valid answer."""
    context7_requests: int = 0
    recalled: dict[str, bytes] = field(default_factory=dict)
    responses: dict[str, bytes] = field(default_factory=dict)
    embeddings: dict[str, bytes] = field(default_factory=dict)

    async def recall(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The cached entries of these keys; empty without a cache, or if it fails."""
        cache = self.deps.cache
        wanted = list(keys)
        if cache is None or not wanted:
            return {}

        async def read(_: float) -> dict[str, bytes]:
            try:
                return await asyncio.to_thread(cache.get_many, wanted)
            except (
                Exception
            ) as error:  # botocore's two base classes, damaged items: continue without the cache
                raise Degraded(f"cache: {type(error).__name__}") from error

        return await self.stages.optional("recall", self.deps.settings.limits.cache, read) or {}

    async def remember(self) -> None:
        """Write what was fetched to the cache."""
        cache, settings = self.deps.cache, self.deps.settings
        if cache is None or not (self.responses or self.embeddings):
            return

        async def write(_: float) -> None:
            try:
                await asyncio.gather(
                    asyncio.to_thread(cache.put_many, self.responses, settings.response_ttl),
                    asyncio.to_thread(cache.put_many, self.embeddings, settings.embedding_ttl),
                )
            except Exception as error:  # as above
                raise Degraded(f"cache: {type(error).__name__}") from error

        await self.stages.optional("remember", settings.limits.cache, write)

    async def recall_pages(self, requests: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        """Read the cached pages of several Context7 requests at once."""
        keys = [self.key(path, params) for path, params in requests]
        self.recalled.update(await self.recall(key for key in keys if key not in self.recalled))

    async def page(self, path: str, params: Mapping[str, str]) -> FetchedPage:
        """A Context7 page, from the cache or from Context7. Raises `Context7Error`."""
        key = self.key(path, params)
        page = unpacked_page(self.recalled.get(key, b""))
        if page is None:
            self.context7_requests += 1
            page = await self.deps.context7.get(path, params)
            if page.text.strip():
                self.responses[key] = packed_page(page)
        return page

    def key(self, path: str, params: Mapping[str, str]) -> str:
        """The cache key of a Context7 request."""
        return response_key(self.deps.context7.address, path, params)
