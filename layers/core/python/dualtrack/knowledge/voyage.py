"""Embeddings from Voyage (the voyageai client), in parallel batches, as little-endian float32."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urlsplit

import aiohttp
import voyageai
from voyageai.client_async import AsyncClient

from dualtrack.errors import Degraded
from dualtrack.knowledge.vectors import pack
from dualtrack.models.metering import asking
from dualtrack.models.turn import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.knowledge.embedder import InputType

_CHARACTERS_PER_TOKEN: Final = 3
_TEXTS_AT_ONCE: Final = 256
_TOKENS_AT_ONCE: Final = 60_000
"""Maximum (estimated) of a request."""

_LOOK_AT: Final = {
    "AuthenticationError": " (look at VOYAGE_API_KEY)",
    "APIConnectionError": " (look at VOYAGE_BASE_URL)",
}
"""The setting that an error of the client points to; the words end in the search's stages and in the log."""


class VoyageEmbedder:
    """Texts to vectors. ``model`` is part of every cache key, so vectors of two models never mix.

    Keeps one connection pool for its event loop. Follows no redirects and never retries: ranking by keywords alone is
    better than waiting.
    """

    def __init__(self, api_key: str, base_url: str, model: str) -> None:
        self.model = model
        self._key = api_key
        self._base_url = _versioned(base_url)
        self._session: aiohttp.ClientSession | None = None

    async def embed(self, texts: Sequence[str], input_type: InputType, timeout: float) -> tuple[bytes, ...]:
        """One vector per text, in order. Raises `Degraded` for anything but a complete answer."""
        batches = list(_batches(texts))
        try:
            answers = await asyncio.gather(*(self._batch(batch, input_type, timeout) for batch in batches))
        except Degraded:
            raise
        except Exception as error:  # for a bad answer the client raises KeyError and the like
            name = type(error).__name__
            raise Degraded(f"Voyage: {name}{_LOOK_AT.get(name, '')}") from error
        return tuple(vector for answer in answers for vector in answer)

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def _batch(self, texts: Sequence[str], input_type: InputType, timeout: float) -> tuple[bytes, ...]:
        voyageai.aiosession.set(self._pool())
        client = AsyncClient(
            api_key=self._key, max_retries=0, timeout=timeout, base_url=self._base_url or None
        )
        with asking("embedding", self.model) as question:
            answer = await client.embed(list(texts), model=self.model, input_type=input_type)
            question.usage = Usage(input_tokens=answer.total_tokens)
        if len(answer.embeddings) != len(texts):
            raise Degraded("Voyage: an answer of the wrong length")
        return tuple(pack(vector) for vector in answer.embeddings)

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            trace = aiohttp.TraceConfig()
            trace.on_request_redirect.append(_refuse_redirect)
            self._session = aiohttp.ClientSession(trace_configs=[trace], trust_env=True)
        return self._session


async def _refuse_redirect(*_: object) -> NoReturn:
    """Requests go only to the configured address."""
    raise Degraded("Voyage: redirected")


def _versioned(base_url: str) -> str:
    """The client's base address must end in the version; it is added to an address without a path."""
    address = base_url.rstrip("/")
    return address if not address or urlsplit(address).path else f"{address}/v1"


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Consecutive texts within Voyage's limits of texts and tokens per request."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        size = len(text) // _CHARACTERS_PER_TOKEN + 1
        full = len(batch) >= _TEXTS_AT_ONCE or tokens + size > _TOKENS_AT_ONCE
        if batch and full:
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += size
    if batch:
        yield batch
