"""What a reader of an event stream costs: reads counted on the wire, and the delay of text.

    uv run --group test python -m bench.stream_cost            # reads, read units and dollars
    uv run --group test python -m bench.stream_cost --latency  # and first token to first text, on the local stack

The reader is the function's own `EventReader` over MiniStack's DynamoDB; units are computed from each recorded
request and the size of its answer: a strongly consistent read takes one unit per started 4 KB, an eventually consistent
one half of that. A stream's lease is acquired and released by the function's own `Leases`; each write is one unit.
Prices are those of us-east-1 on demand.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import statistics
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.events import delta
from dualtrack.storage.leases import STREAMS
from dualtrack.streaming.follow_events import EventReader, PollIntervals
from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.prices import prices
from dualtrack_stack.stacks.function_specs import SPECS

from tests.clients.stack_client import PATIENCE, Person, Root
from tests.drivers.world import World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

READ_DOLLARS_PER_MILLION: Final = 0.125
WRITE_DOLLARS_PER_MILLION: Final = 0.625
STREAM_MEGABYTES: Final = SPECS["stream"].memory
SECONDS: Final = 20.0
DELTAS_A_SECOND: Final = 7.7
DELTA_TEXT: Final = "Some words of an answer as it is written. "


@dataclass
class Reads:
    """The requests of a DynamoDB client since counting began; ``units`` are those of reads."""

    requests: int = 0
    writes: int = 0
    units: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, size: int, *, strong: bool) -> None:
        """Count one answer of this many bytes."""
        with self.lock:
            self.requests += 1
            self.units += max(math.ceil(size / 4096), 1) * (1.0 if strong else 0.5)


class Counting:
    """A DynamoDB client that counts what it reads."""

    def __init__(self, client: Any, reads: Reads) -> None:
        self._client = client
        self._reads = reads

    def get_item(self, **request: Any) -> Any:
        """A counted GetItem."""
        return self._counted(self._client.get_item(**request), request)

    def query(self, **request: Any) -> Any:
        """A counted Query."""
        return self._counted(self._client.query(**request), request)

    def update_item(self, **request: Any) -> Any:
        """A counted UpdateItem, whether or not it succeeds."""
        self._reads.writes += 1
        return self._client.update_item(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _counted(self, answer: Any, request: dict[str, Any]) -> Any:
        content = answer.get("Items") or answer.get("Item") or {}
        self._reads.count(len(json.dumps(content, default=repr)), strong=bool(request.get("ConsistentRead")))
        return answer


@contextlib.contextmanager
def writing(world: World, chat: Chat, per_second: float) -> Iterator[None]:
    """Write deltas at the rate of a streaming chat, while the block runs."""
    ended = threading.Event()

    def write() -> None:
        log = world.stores.log(chat)
        while per_second and not ended.wait(1 / per_second):
            log.append([delta(1, DELTA_TEXT)])

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _read(world: World, chat: Chat, client: Any, after: int, seconds: float) -> None:
    reader = EventReader(client, "chats", world.clock)

    async def follow() -> None:
        async for _ in reader.follow(reader.chat(chat.user, chat.chat_id), after):
            pass

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(follow(), seconds)


def measure(world: World, name: str, per_second: float, *, resumed: bool) -> None:
    """One kind of reader, for `SECONDS`; prints its row."""
    chat = world.start("Hello.", user=name)
    after = 0
    if resumed:
        world.stores.log(chat).append([delta(1, DELTA_TEXT)] * 20)
        after = 22
    reads = Reads()
    client = Counting(world.stores.chats.client, reads)
    started = time.monotonic()
    with writing(world, chat, per_second):
        asyncio.run(_read(world, chat, client, after, SECONDS))
    seconds = time.monotonic() - started
    units = reads.units / seconds
    dollars = units * 3600 * READ_DOLLARS_PER_MILLION / 1e6
    print(f"| {name} | {reads.requests / seconds:.1f} | {units:.2f} | {dollars:.5f} |")


def lease_writes(world: World, others: int) -> int:
    """Writes of a stream's lease while the user has this many other streams."""
    reads = Reads()
    client: Any = Counting(world.stores.chats.client, reads)
    for _ in range(others):
        world.stores.leases.take(f"leases-{others}", STREAMS)
    leases = replace(world.stores.leases, client=client)
    leases.free(leases.take(f"leases-{others}", STREAMS))
    return reads.writes


def reads_table() -> None:
    """The table of readers."""
    print("| reader | reads a second | read units a second | dollars a reader-hour (DynamoDB) |")
    print("|---|---|---|---|")
    with make_world() as world:
        measure(world, "idle, from the start", 0, resumed=False)
        measure(world, "idle, resumed within the log", 0, resumed=True)
        measure(world, "busy, 7.7 deltas a second", DELTAS_A_SECOND, resumed=False)
        alone, beside = lease_writes(world, 0), lease_writes(world, 1)
    dollars = alone * 3600 / PollIntervals().stream * WRITE_DOLLARS_PER_MILLION / 1e6
    print(
        f"\nThe lease of a stream: {alone} writes, {beside} while another is open; a stream lasts "
        f"{PollIntervals().stream:.0f} s: {dollars:.5f} dollars a reader-hour."
    )
    gateway = prices()["lambda_gb_second"] * STREAM_MEGABYTES / 1024 * 3600
    print(
        f"\nThe function that holds the stream open ({STREAM_MEGABYTES} MB, arm64): {gateway:.4f} dollars a reader-hour."
    )


def latency_table(times: int) -> None:
    """Time from the model's first token to a client's first delta on the local stack, by this machine's clock."""
    samples: list[float] = []
    with serve_offline_model() as model, tempfile.TemporaryDirectory() as folder:
        environment = {"ANTHROPIC_API_KEY": "bench", "ANTHROPIC_BASE_URL": model.url}
        with LocalStack(Path(folder), environment=environment) as stack:
            person = Person(stack.url, stack.token("bench"))
            Root(stack, Path(folder)).grant(person.id)
            for number in range(times + 1):
                sample = _first_text(person, model, number)
                if number:  # the first chat starts the functions' processes
                    samples.append(sample)
            person.close()
    ordered = sorted(samples)
    print(
        f"\nFirst token to first text, {times} chats: median {statistics.median(ordered) * 1e3:.0f} ms, "
        f"fastest {ordered[0] * 1e3:.0f} ms, slowest {ordered[-1] * 1e3:.0f} ms."
    )


def _first_text(person: Person, model: Any, number: int) -> float:
    """Seconds from the first text that the model sends to the first that the client receives."""
    key = f"{uuid.uuid4().hex}:"
    silence, gap = 1.5, 0.01  # the reader is idle by then, as when a model thinks
    model.script.add(
        {"match": key, "text": "word " * 40, "chunk": 5, "delay_first": silence, "delay_chunk": gap}
    )
    chat = person.start(f"{key} {number}")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_asked_at, model, key)
        for event in person.stream(chat["chat_id"]):
            if event.kind == "delta":
                return time.monotonic() - asked.result() - silence - gap
    raise RuntimeError("the chat had no text")


def _asked_at(model: Any, key: str) -> float:
    """When the model was called, by its own record of requests."""
    deadline = time.monotonic() + PATIENCE
    while not any(key in json.dumps(request.body) for request in model.requests):
        if time.monotonic() > deadline:
            raise RuntimeError("the model was not asked: was the chat refused?")
        time.sleep(0.002)
    return time.monotonic()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--latency", action="store_true", help="start the local stack and time the first text"
    )
    parser.add_argument("--chats", type=int, default=10)
    chosen = parser.parse_args()
    reads_table()
    if chosen.latency:
        latency_table(chosen.chats)


if __name__ == "__main__":
    main()
