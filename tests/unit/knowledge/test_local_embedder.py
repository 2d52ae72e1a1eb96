"""The client of the function ``embed``, over the wire: its requests, and which answers it accepts."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from dualtrack.errors import Degraded
from dualtrack.knowledge.local_embedder import LOCAL_MODEL, TEXTS_AT_ONCE, LocalEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = tuple[dict[str, str], Any]
ALIAS = "arn:aws:lambda:us-east-1:000000000000:function:embed:live"


class Service:
    """Lambda's invoke operation; ``answers`` turns the texts of a call into headers and a payload."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answers: Callable[[list[str]], Answer] = vectors_of


def vector(text: str) -> str:
    """A vector that identifies its text."""
    return base64.b64encode(text.encode()[:1536].ljust(1536, b"\0")).decode()


def vectors_of(texts: list[str]) -> Answer:
    return {}, {"model": LOCAL_MODEL, "vectors": [vector(text) for text in texts]}


@pytest.fixture
def service() -> Iterator[tuple[Service, LocalEmbedder]]:
    new_service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path.endswith("/invocations")
            assert "function%3Aembed%3Alive" in self.path
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
            new_service.asked.append(texts)
            headers, payload = new_service.answers(texts)
            body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            self.send_response(200)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = boto3.client(
        "lambda",
        endpoint_url=f"http://127.0.0.1:{server.server_address[1]}",
        region_name="us-east-1",
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    yield new_service, LocalEmbedder(client, ALIAS, asyncio.Semaphore(8))
    server.shutdown()
    server.server_close()


def embed(embedder: LocalEmbedder, texts: list[str]) -> tuple[bytes, ...]:
    return asyncio.run(embedder.embed(texts, "document", 20))


def test_vectors_are_in_the_order_of_the_texts_however_many(service: tuple[Service, LocalEmbedder]) -> None:
    remote, embedder = service
    texts = [f"text {number}" for number in range(TEXTS_AT_ONCE * 3 + 5)]
    assert embed(embedder, texts) == tuple(base64.b64decode(vector(text)) for text in texts)
    assert sorted(map(len, remote.asked)) == [5, TEXTS_AT_ONCE, TEXTS_AT_ONCE, TEXTS_AT_ONCE]


def test_calls_at_a_time_are_as_many_as_the_account_allows(service: tuple[Service, LocalEmbedder]) -> None:
    """Each is an execution of the account's, which may have ten in all."""
    remote, embedder = service
    inside: list[int] = []
    two, third, most = threading.Barrier(2), threading.Barrier(3), 0

    def answers(texts: list[str]) -> Answer:
        nonlocal most
        inside.append(1)
        two.wait(20)
        with suppress(threading.BrokenBarrierError):  # for good, as soon as no third call came in this time
            third.wait(0.5)
        most = max(most, len(inside))
        two.wait(20)
        inside.pop()
        return vectors_of(texts)

    remote.answers = answers
    texts = [f"text {number}" for number in range(8 * TEXTS_AT_ONCE)]
    assert len(embed(replace(embedder, slots=asyncio.Semaphore(2)), texts)) == len(texts)
    assert most == 2


def test_texts_that_the_function_had_no_time_for_are_requested_again(
    service: tuple[Service, LocalEmbedder],
) -> None:
    remote, embedder = service
    remote.answers = lambda texts: vectors_of(texts[:2])
    texts = ["a", "b", "c", "d", "e"]
    assert embed(embedder, texts) == tuple(base64.b64decode(vector(text)) for text in texts)
    assert remote.asked == [texts, ["c", "d", "e"], ["e"]]


@pytest.mark.parametrize(
    "answer",
    [
        ({"X-Amz-Function-Error": "Unhandled"}, {"errorMessage": "no"}),
        ({}, {"model": "another", "vectors": []}),
        ({}, {"model": LOCAL_MODEL, "vectors": []}),
        ({}, {"model": LOCAL_MODEL, "vectors": ["###"]}),
        ({}, {"model": LOCAL_MODEL, "vectors": ["AAAA"]}),
        ({}, {"model": LOCAL_MODEL, "vectors": [vector("a"), vector("b")]}),
        ({}, {"model": LOCAL_MODEL}),
        ({}, ["no"]),
        ({}, b"no json"),
    ],
)
def test_anything_but_a_complete_answer_degrades(
    service: tuple[Service, LocalEmbedder], answer: Answer
) -> None:
    remote, embedder = service
    remote.answers = lambda _: answer
    with pytest.raises(Degraded):
        embed(embedder, ["a"])


def test_a_missing_function_degrades() -> None:
    client = boto3.client(
        "lambda",
        endpoint_url="http://127.0.0.1:9",
        region_name="us-east-1",
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    with pytest.raises(Degraded):
        embed(LocalEmbedder(client, ALIAS, asyncio.Semaphore(8)), ["a"])
