"""A strict fake of Voyage's embeddings endpoint on loopback. Vectors come from a function of the text."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.requests import Request

FIELDS = {
    "input",
    "model",
    "input_type",
    "truncation",
    "output_dtype",
    "output_dimension",
    "encoding_format",
}


def words_as_vector(text: str, size: int = 64) -> list[float]:
    """A bag of hashed words: texts that share words are close."""
    vector = [0.0] * size
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % size] += 1.0
    return vector if any(vector) else [1.0] * size


def one_by_one(texts: Sequence[str], input_type: str | None) -> list[list[float]]:
    """The default embedding: a vector per text, for any input type."""
    return [words_as_vector(text) for text in texts]


@dataclass
class FakeVoyage:
    """``answers`` are responses that are sent before embeddings."""

    api_key: str = "pa-test"
    delay: float = 0.0
    embed: Callable[[Sequence[str], str | None], Sequence[Sequence[float]]] = one_by_one
    answers: deque[Any] = field(default_factory=deque)
    always: Any = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""

    def texts(self, input_type: str) -> list[str]:
        return [text for body in self.requests if body["input_type"] == input_type for text in body["input"]]

    async def embeddings(self, request: Request) -> Response:
        await asyncio.sleep(self.delay)
        if request.headers.get("authorization") != f"Bearer {self.api_key}":
            return JSONResponse({"detail": "Provided API key is invalid."}, status_code=401)
        body = await request.json()
        problem = _problem(body)
        if problem:
            return JSONResponse({"detail": problem}, status_code=400)
        self.requests.append(body)
        answer = self.answers.popleft() if self.answers else self.always
        if answer is not None:
            return answer if isinstance(answer, Response) else await answer(request)
        vectors = await run_in_threadpool(self.embed, body["input"], body["input_type"])
        return JSONResponse(embeddings_body(vectors, body["model"]))


def embeddings_body(vectors: Sequence[Sequence[float]], model: str = "voyage-3-large") -> dict[str, Any]:
    """The documented answer with base64 float32 vectors."""
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode(),
        }
        for index, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model, "usage": {"total_tokens": 10 * len(data)}}


def _problem(body: Any) -> str:
    if not isinstance(body, dict) or set(body) - FIELDS:
        return "unknown fields"
    texts = body.get("input")
    if not isinstance(texts, list) or not 1 <= len(texts) <= 1_000:
        return "input must hold 1 to 1000 texts"
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return "texts must not be empty"
    if sum(len(text) for text in texts) / 3 > 120_000:
        return "too many tokens"
    if not body.get("model") or body.get("input_type") not in (None, "query", "document"):
        return "model or input_type"
    return "" if body.get("encoding_format") in (None, "base64") else "encoding_format"


@contextmanager
def serve_voyage(control: FakeVoyage) -> Iterator[FakeVoyage]:
    """The control object with its ``url`` (without /v1) while it is served."""

    async def other(request: Request) -> Response:
        control.paths.append(request.url.path)
        return Response(status_code=404)

    routes = [
        Route("/v1/embeddings", control.embeddings, methods=["POST"]),
        Route("/{rest:path}", other, methods=["GET", "POST"]),
    ]
    with serve_in_thread(Starlette(routes=routes)) as url:
        control.url = url
        yield control
