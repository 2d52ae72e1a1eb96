"""Many webhooks with receivers of every kind, over tables in memory: to measure them, and in short for the tests."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack.notices import Notice
from dualtrack.plugins.webhooks.deliver import QUIET_SECONDS, WAITS, Deliverer
from dualtrack.plugins.webhooks.post import MOST_READ, Poster, _BoundedBody
from dualtrack.plugins.webhooks.store import WebhookStore
from dualtrack.plugins.webhooks.values import Webhook
from dualtrack.storage.outbox import Outbox

from tests.drivers.memory_aws import Client, MemoryAws
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD: Final = ("times out", "answers late", "hangs up", "redirects", "sends 1 GB", "resets")
GOOD: Final = "ok"
TAKE: Final = (GOOD, "sends 1 GB")
"""Kinds that answer 200 in time, the second with a body that nobody reads."""

SILENT: Final = 0.2
"""Seconds after which the measurement counts a receiver as silent; the function waits for 5."""

GIGABYTE: Final = 1_000_000_000
HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@dataclass
class Seen:
    """Of one kind of receiver. ``lost``: messages that were never taken; ``again``: how often one came again under its
    id; ``most_read``: bytes of one answer that were read."""

    messages: int = 0
    lost: int = 0
    again: int = 0
    most_read: int = 0


@dataclass
class Receiver:
    """A server; the path says how it behaves, and it takes everything once it is `healed`. By path and id
    ``arrived``: how often, and ``taken``: what was answered in time."""

    port: int = 0
    arrived: Counter[tuple[str, str]] = field(default_factory=Counter)
    taken: set[tuple[str, str]] = field(default_factory=set)
    healed: threading.Event = field(default_factory=threading.Event)
    complete: threading.Condition = field(default_factory=threading.Condition)


@dataclass
class Crowd:
    """The outbox, the store, the receiver, and what tells them."""

    outbox: Outbox
    store: WebhookStore
    clock: FakeClock
    receiver: Receiver
    made: int = 0
    told: Counter[str] = field(default_factory=Counter)

    def hook(self, kind: str, **more: Any) -> Webhook:
        """A webhook of an owner of its own."""
        self.made += 1
        path = f"{kind.replace(' ', '-')}/{self.made}"
        hook = Webhook(
            f"wh_{self.made}", f"owner{self.made}", f"http://127.0.0.1:{self.receiver.port}/{path}",
            ("chat.done",), "whsec_c2VjcmV0", 0, **more,
        )  # fmt: skip
        self.store.make(hook, [])
        return hook

    def tell(self, hook: Webhook, messages: int, *, spread: bool = False) -> None:
        """Note so many messages for it; ``spread``: as its deliveries at once."""
        path = hook.url.split("/", 3)[3]
        for number in range(messages):
            self.told[path] += 1
            notice = Notice(f"msg_{self.told[path]}", "chat.done", int(self.clock() * 1000) + number, {})
            if spread:
                self.store.send(hook, notice)
            else:
                self.outbox.tell_once(hook.owner, notice, 0)

    def deliverer(self, seconds: float = SILENT) -> Deliverer:
        """As the function has it."""
        plain: Any = self
        poster = Poster(loopback=True, seconds=seconds, names=lambda *_: ["127.0.0.1"])
        return Deliverer(self.store, plain, poster, "bench", jitter=lambda: 0.0)

    @staticmethod
    def open(webhook_id: str, sealed: str) -> str:
        """Secrets are not encrypted here."""
        assert webhook_id
        return sealed

    def hostile(self, each: int, bad: int) -> dict[str, Seen]:
        """So many messages to each of ten that answer, and as many in all to so many ``bad`` ones; these are mended
        after each message was tried."""
        for _ in range(10):
            self.tell(self.hook(GOOD), each)
        for number in range(bad):
            self.tell(self.hook(BAD[number % len(BAD)]), 10 * each // bad)
        seen: dict[str, Seen] = {kind: Seen() for kind in (GOOD, *BAD)}
        with _counted_reads(seen):
            while len(self.receiver.arrived) < self.told.total():
                self.deliverer().run(60)
                self.clock.now += QUIET_SECONDS + 1
            self.receiver.healed.set()
            while not self._is_quiet():
                self.deliverer(5.0).run(60)
                self.clock.now += WAITS[-1]
        for path, messages in self.told.items():
            of_kind = seen[path.split("/")[0].replace("-", " ")]
            told = [(path, f"msg_{number}") for number in range(1, messages + 1)]
            of_kind.messages += messages
            of_kind.lost += sum(one not in self.receiver.taken for one in told)
            of_kind.again += sum(max(0, self.receiver.arrived[one] - 1) for one in told)
        return seen

    def _is_quiet(self) -> bool:
        hooks = [hook for number in range(1, self.made + 1) for hook in self.store.of(f"owner{number}")]
        return not any(map(self.store.waiting, hooks)) and not list(self.store.due())

    def until_arrived(self, messages: int) -> float:
        """Run until so many have arrived at those that answer; when they had."""
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                self.deliverer(5.0).run(50)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        with self.receiver.complete:
            while sum(path.startswith(GOOD) for path, _ in self.receiver.arrived) < messages:
                self.receiver.complete.wait(60)
        ended = time.monotonic()
        over.set()
        self.receiver.healed.set()
        thread.join()
        return ended


@contextlib.contextmanager
def crowd() -> Iterator[Crowd]:
    """A new one."""
    aws, clock = MemoryAws(), FakeClock()
    client: Any = Client(lambda operation, request: aws.call("dynamodb", operation, request))
    with _receiving() as receiver:
        outbox, store = Outbox(client, "chats", clock), WebhookStore(client, "chats", clock)
        yield Crowd(outbox, store, clock, receiver)


@contextlib.contextmanager
def _counted_reads(seen: dict[str, Seen]) -> Iterator[None]:
    """Note the most that was read of one answer; which one it was shows in its head."""
    read_into = _BoundedBody.readinto

    def counted(self: _BoundedBody, buffer: memoryview) -> int | None:
        taken = read_into(self, buffer)
        head = bytes(buffer[: taken or 0])
        kind = "sends 1 GB" if b"%d" % GIGABYTE in head else "redirects" if b" 307 " in head else GOOD
        seen[kind].most_read = max(seen[kind].most_read, MOST_READ - self._left)
        return taken

    _BoundedBody.readinto = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        _BoundedBody.readinto = read_into  # type: ignore[method-assign]


@contextlib.contextmanager
def _receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    receiver.port = listening.getsockname()[1]

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=_answered, args=(receiver, client), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.healed.set()
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def _answered(receiver: Receiver, client: socket.socket) -> None:
    with client, contextlib.suppress(OSError):
        read = b""
        while b"\r\n\r\n" not in read or not read.endswith(b"}"):
            more = client.recv(65_536)
            if not more:
                return
            read += more
        path = read.split(b" ", 2)[1].decode()[1:]
        message = read.split(b"webhook-id: ", 1)[1].split(b"\r\n", 1)[0].decode()
        kind = path.split("/")[0].replace("-", " ")
        with receiver.complete:
            receiver.arrived[path, message] += 1
            kind = GOOD if receiver.healed.is_set() else kind
            if kind in TAKE:
                receiver.taken.add((path, message))
            receiver.complete.notify_all()
        _behave(receiver, client, kind)


def _behave(receiver: Receiver, client: socket.socket, kind: str) -> None:
    if kind == "times out":
        receiver.healed.wait(5)
        return
    if kind == "answers late":
        receiver.healed.wait(2 * SILENT)
    if kind == "hangs up":
        return
    if kind == "resets":
        client.sendall(HEAD[:10])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return
    if kind == "redirects":
        client.sendall(b"HTTP/1.1 307 There\r\nLocation: /ok/elsewhere\r\nContent-Length: 0\r\n\r\n")
        return
    if kind == "sends 1 GB":
        client.sendall(HEAD % GIGABYTE)
        block = random.Random(1).randbytes(1_000_000)
        for _ in range(GIGABYTE // len(block)):
            client.sendall(block)
        return
    client.sendall(HEAD % 0)
