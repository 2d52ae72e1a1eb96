"""Embeddings from our own function ``embed``, which needs no key (`dualtrack.knowledge.minilm`)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from dualtrack.errors import Degraded
from dualtrack.runtime.clients import LazyClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_lambda.client import LambdaClient

LOCAL_MODEL: Final = "all-MiniLM-L6-v2-int8"
"""The name of `dualtrack.knowledge.minilm`, which loads the model's runtime and is not imported here."""

TEXTS_AT_ONCE: Final = 16
"""Texts of a call, which take less than a second. Small calls are answered one after the other, so that a caller whose
time runs out has some of the vectors."""

_VECTOR_BYTES: Final = 4 * 384


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """Texts to vectors of `LOCAL_MODEL`. ``function``: the ARN of the function's alias. ``slots``: one for each call
    at a time, shared by all who embed."""

    client: LambdaClient
    function: str
    slots: asyncio.Semaphore = field(repr=False)
    model: str = LOCAL_MODEL

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:  # noqa: ARG002 - one model for both
        """One vector per text, in order. Raises `Degraded` for anything but a complete answer in time."""
        batches = [texts[start : start + TEXTS_AT_ONCE] for start in range(0, len(texts), TEXTS_AT_ONCE)]
        try:
            async with asyncio.timeout(timeout):
                answers = await asyncio.gather(*(self._batch(batch) for batch in batches))
        except TimeoutError as error:
            raise Degraded("embed: out of time") from error
        return tuple(vector for answer in answers for vector in answer)

    async def close(self) -> None:
        """Nothing to close."""

    async def _batch(self, texts: Sequence[str]) -> list[bytes]:
        """The function answers in part if its time runs out: the rest is requested again."""
        vectors: list[bytes] = []
        while len(vectors) < len(texts):
            async with self.slots:
                more = await asyncio.to_thread(self._call, texts[len(vectors) :])
            if not more:
                raise Degraded("embed: no progress")
            vectors += more
        return vectors

    def _call(self, texts: Sequence[str]) -> list[bytes]:
        try:
            answer = self.client.invoke(
                FunctionName=self.function, Payload=json.dumps({"texts": list(texts)}).encode()
            )
            payload = json.loads(answer["Payload"].read())
        except (BotoCoreError, ClientError, ValueError) as error:
            raise Degraded(f"embed: {type(error).__name__}") from error
        if answer.get("FunctionError"):
            raise Degraded("embed: the function failed")
        return _vectors(payload, len(texts))


def open_local_embedder(function: str, at_once: int) -> LocalEmbedder | None:
    """The embedder, with the calling function's role; None if no function is named. ``at_once``: its calls at a time,
    each of which is an execution of the account's."""
    client: Any = LazyClient("lambda")
    return LocalEmbedder(client, function, asyncio.Semaphore(at_once)) if function else None


def _vectors(payload: Any, most: int) -> list[bytes]:
    if not isinstance(payload, dict) or payload.get("model") != LOCAL_MODEL:
        raise Degraded("embed: an answer of another model")
    try:
        vectors = [base64.b64decode(text, validate=True) for text in payload["vectors"]]
    except (KeyError, TypeError, binascii.Error) as error:
        raise Degraded("embed: an answer that cannot be read") from error
    if len(vectors) > most or any(len(vector) != _VECTOR_BYTES for vector in vectors):
        raise Degraded("embed: an answer of the wrong length")
    return vectors
