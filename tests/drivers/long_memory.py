"""Conversations of any length through a running stack, with every text known beforehand (CONTRACT 6).

A `Talk` sets what its messages, tools and answers say, compares each record with it afterwards, and checks the model
calls on the wire: within the budget, and nothing sent again outside the unchanged prefix.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import struct
import time
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualtrack.models.providers.anthropic.client import connect
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.sample_docs.server import create_app
from dualtrack_stack.local.stack import LocalStack

from tests.clients.stack_client import KEYS, TERMINAL, Person, Root
from tests.drivers.images import PNG_START, chunk
from tests.drivers.world import FakeClock, World
from tests.servers.metered_model import serve_metered_model
from tests.servers.tool_server import NAME, serve_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import httpx
    from dualtrack_stack.local.offline_model.script import Script

    from tests.servers.metered_model import Call, MeteredModel, Sent
    from tests.servers.tool_server import ToolServer

PATIENCE: Final = 300.0
"""Seconds for one chat; far more than a working stack needs."""

VERBATIM: Final = 2_000
"""Characters up to which the summarised track has a query in full."""

_READERS: Final = 4
_LETTERS: Final = "etaoinshrdlu"


@dataclass
class Lab:
    """A running stack whose model and tools are ours."""

    root: Root
    model: MeteredModel
    tools: ToolServer

    def person(self, name: str) -> Person:
        """A user with enough credits for a bench."""
        person = Person(self.root.stack.url, self.root.stack.token(name))
        self.root.grant(person.id)
        return person

    def talk(self, name: str, profile: str = "") -> Talk:
        """A new conversation of a new user."""
        return Talk(self.person(name), self.model.script, self.tools, profile)


@contextlib.contextmanager
def running_lab(state_dir: Path, settings: Mapping[str, str], *, port: int = 0) -> Iterator[Lab]:
    """The stack with these settings on top of its model, tools and documents."""
    with serve_metered_model() as model, serve_tools() as tools, serve_in_thread(create_app()) as documents:
        servers = [{"name": NAME, "url": tools.url, "price_class": "other"}]
        environment = {
            **KEYS,
            "ANTHROPIC_BASE_URL": model.url,
            "CONTEXT7_BASE_URL": documents,
            "MCP_SERVERS": json.dumps(servers),
            **settings,
        }
        environment.pop("VOYAGE_API_KEY")  # no embeddings are served here
        with LocalStack(state_dir, port=port, environment=environment) as stack:
            root = Root(stack, state_dir)
            root.invoke("Mcp", {"action": "refresh"})
            yield Lab(root, model, tools)


def prose(seed: str, characters: int) -> str:
    """Generated sentences of this many characters, the same for the same seed."""
    drawn = random.Random(seed)
    said: list[str] = []
    length = 0
    while length < characters:
        words = (
            "".join(drawn.choices(_LETTERS, k=drawn.randint(2, 9))) for _ in range(drawn.randint(18, 30))
        )
        said.append(f"{' '.join(words).capitalize()} {drawn.randint(10, 9999)}.")
        length += len(said[-1]) + 1
    return " ".join(said)[:characters].rstrip().ljust(characters, ".")


def picture(seed: str, size: int) -> bytes:
    """A PNG of about this many bytes: noise, which does not compress."""
    drawn = random.Random(seed)
    width = 400
    height = max(size // (3 * width), 1)
    rows = b"".join(b"\0" + drawn.randbytes(3 * width) for _ in range(height))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, 0)),
    )
    return PNG_START + b"".join(chunk(*part) for part in (*parts, (b"IEND", b"")))


@dataclass
class Talk:
    """A conversation: what each record of it must say, and the chats that made it.

    ``seconds``: of each chat, from its POST to its last event. ``stops``: allowed stop reasons of an answer.
    """

    person: Person
    script: Script
    tools: ToolServer
    profile: str = ""
    marker: str = field(default_factory=lambda: f"marker-{uuid.uuid4().hex[:12]}")
    conversation_id: str = ""
    expected: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    chats: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stops: tuple[str, ...] = ("complete",)

    def ask(self, message: str, turns: Sequence[Sequence[str | bytes]] = (), answer: str = "Done.") -> None:
        """Run one query: each turn asks for its results in parallel, then comes the answer."""
        began = time.monotonic()
        chat_id = self.start(message, turns, answer)
        self.finish(chat_id)
        self.seconds.append(time.monotonic() - began)

    def start(self, message: str, turns: Sequence[Sequence[str | bytes]] = (), answer: str = "Done.") -> str:
        """POST the query; the chat's id."""
        number = sum("-" not in record_id for record_id in self.expected) + 1
        key = f"{self.marker}-{number}:"
        asked = f"{key} {message}"[: max(len(message), len(key))]
        before = 0
        for results in turns:
            calls = [
                self._call(f"q{number}-t{before + index}", texts) for index, texts in enumerate(results, 1)
            ]
            before += len(results)
            self.script.add({"match": key, "content": calls})
        self.script.add({"match": key, "text": answer, "notes": True})
        self.expected |= {f"q{number}": asked, f"q{number}-r": answer.rstrip()}
        if not self.conversation_id:
            self.conversation_id = self._open()
        started = patient(lambda: self.person.post(asked, self.conversation_id), 202)
        assert started["message_id"] == f"q{number}", started
        return str(started["chat_id"])

    def finish(self, chat_id: str) -> None:
        """Wait for the chat's last event."""
        self.chats.append(ended(self.person, chat_id))

    def _open(self) -> str:
        body = {"profile": self.profile} if self.profile else {}
        created = patient(lambda: self.person.http.post("/v1/conversations", json=body), 201)
        return str(created["conversation_id"])

    def _call(self, record_id: str, result: str | bytes) -> dict[str, Any]:
        name = f"{self.marker}-{record_id}"
        if isinstance(result, str):
            self.tools.pages[name] = self.expected[record_id] = result
        else:
            self.tools.photos[name] = self.files[record_id] = result
        tool = f"{NAME}_page" if isinstance(result, str) else f"{NAME}_photo"
        return {"type": "tool_use", "name": tool, "input": {"name": name}}

    def wrong(self) -> list[str]:
        """Chats that did not end as expected, and records that differ from what was said."""
        chats = [
            f"{chat.get('message_id')}: {chat.get('status')} ({chat.get('stop') or chat.get('error')})"
            for chat in self.chats
            if chat.get("status") != "done" or chat.get("stop") not in self.stops
        ]
        with ThreadPoolExecutor(_READERS) as pool:
            texts = pool.map(lambda pair: self._wrong_text(*pair), self.expected.items())
            files = pool.map(lambda pair: self._wrong_file(*pair), self.files.items())
            return [*chats, *filter(None, texts), *filter(None, files)]

    def _wrong_text(self, record_id: str, expected: str) -> str:
        text = record_text(self.person, self.conversation_id, record_id)
        if text == expected:
            return ""
        return f"{record_id}: {len(text)} characters, not {len(expected)}: {text[:100]}"

    def _wrong_file(self, record_id: str, expected: bytes) -> str:
        path = f"/v1/conversations/{self.conversation_id}/records/{record_id}/attachments/1"
        answer = self.person.http.get(path)
        if answer.content == expected:
            return ""
        return f"{record_id}: its file is answered with {answer.status_code}, {len(answer.content)} bytes"


def patient(send: Callable[[], httpx.Response], *expected: int) -> Any:
    """The answer's body; waits and repeats while the requests are rate limited."""
    deadline = time.monotonic() + PATIENCE
    while (answer := send()).status_code == 429 and time.monotonic() < deadline:
        time.sleep(float(answer.headers["Retry-After"]))
    assert answer.status_code in (expected or (200,)), answer.text
    return answer.json()


def ended(person: Person, chat_id: str) -> dict[str, Any]:
    """The chat object once the chat's log is closed."""
    last, deadline = 0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for event in person.stream(chat_id, last):
            last = event.id
            if event.kind in TERMINAL:
                return dict(patient(lambda: person.http.get(f"/v1/chats/{chat_id}")))
    raise AssertionError(f"{chat_id} did not end")


def record_text(person: Person, conversation_id: str, record_id: str) -> str:
    """A record's whole text by its id; empty if it does not exist."""
    path = f"/v1/conversations/{conversation_id}/records/{record_id}"
    text, offset = "", 0
    while True:
        page = {"offset": offset} if offset else {}
        shown = patient(partial(person.http.get, path, params=page), 200, 404)
        text += str(shown.get("result", shown.get("content", "")))
        if not (offset := int(shown.get("next_offset", 0))):
            return text


# ── what was on the wire ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Wire:
    """The turns of a conversation, and the maxima over them: tokens by the cautious estimate in a query's first call
    (not yet corrected by a count) and in any call; tokens as the service counts them; bytes; files.
    """

    calls: int
    first: int
    cautious: int
    counted: int
    size: int
    media: int
    refused: tuple[str, ...]


def on_the_wire(calls: Sequence[Call], marker: str) -> Wire:
    """The maxima over the turns of this conversation."""
    turns = [call for call in calls if call.kind == "turn" and call.asks(marker)]
    taken = [call for call in turns if not call.refused]

    def largest(figure: Callable[[Call], int], among: Sequence[Call] = taken) -> int:
        return max(map(figure, among), default=0)

    return Wire(
        len(turns),
        largest(lambda call: call.cautious, query_starts(turns, marker)),
        largest(lambda call: call.cautious),
        largest(lambda call: call.counted),
        largest(lambda call: call.size),
        largest(lambda call: call.media),
        tuple(call.refused for call in turns if call.refused),
    )


@dataclass(frozen=True, slots=True)
class Resent:
    """Tokens sent again, outside the prefix that is unchanged since the query before.

    ``between``: by queries that fold nothing; ``broken``: how many of those do not begin with all that the query before
    them sent; ``folds``: queries that begin with another digest; ``at_folds``: tokens those sent again.
    """

    starts: int = 0
    between: int = 0
    broken: int = 0
    folds: int = 0
    at_folds: int = 0


def query_starts(calls: Sequence[Call], marker: str) -> list[Call]:
    """The first model call of each query of a conversation, in order."""
    starts: dict[str, Call] = {}
    for call in calls:
        last = call.blocks[-1]
        if call.kind == "turn" and not call.refused and f"] {marker}-" in last.head and last.role == "user":
            starts.setdefault(last.head.split("]")[0], call)
    return list(starts.values())


def resent(starts: Sequence[Call]) -> Resent:
    """Compare each query's first call with that of the query before."""
    between = broken = folds = at_folds = 0
    for before, now in itertools.pairwise(starts):
        kept = _common(before.blocks, now.blocks)
        old = {(block.role, block.key) for block in before.blocks}
        again = sum(block.tokens for block in now.blocks[kept:] if (block.role, block.key) in old)
        if digest_of(now) != digest_of(before):
            folds, at_folds = folds + 1, at_folds + again
            continue
        between += again
        broken += not keeps_prefix(before, now)
    return Resent(len(starts), between, broken, folds, at_folds)


def keeps_prefix(before: Call, now: Call) -> bool:
    """Whether a query begins with all that the one before sent, and with its message if that is kept in full."""
    needed = len(before.blocks) - (before.blocks[-1].tokens > VERBATIM // 4)
    return _common(before.blocks, now.blocks) >= needed


def digest_of(call: Call) -> str:
    """The id of the digest that is sent first; empty if none is."""
    head = call.blocks[0].head
    return head.split(",")[0].removeprefix("[ID:") if head.startswith("[ID:d") else ""


def _common(before: Sequence[Sent], now: Sequence[Sent]) -> int:
    return next(
        (index for index, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(now)),
    )


# ── what a step reads ─────────────────────────────────────────────────────────────────────────────


@dataclass
class Reads:
    """DynamoDB reads of one step: requests, and the items that came with them."""

    requests: int = 0
    items: int = 0

    def answered(self, model: Any, parsed: Mapping[str, Any], **_: Any) -> None:
        """Count an answer."""
        if model.name not in ("GetItem", "Query", "BatchGetItem"):
            return
        self.requests += 1
        self.items += len(parsed.get("Items", ())) + ("Item" in parsed)
        self.items += sum(len(listed) for listed in parsed.get("Responses", {}).values())


def reads_of_steps(lab: Lab, talk: Talk, model_name: str) -> dict[str, Reads]:
    """Run one more query's steps here over the deployed tables; what each of them reads.

    For conversations of the library's own profiles.
    """
    root = Root(lab.root.stack, lab.root.state_dir)
    events = root.client("dynamodb").meta.events
    offline: Any = lab.model
    world = World(
        root.stores(), offline, FakeClock(time.time()), connect(lab.model.url, "bench"), model_name=model_name
    )
    reads: dict[str, Reads] = {}

    def counted(step: str, run: Callable[[], Any]) -> Any:
        reads[step] = Reads()
        events.register("after-call.dynamodb", reads[step].answered, unique_id=step)
        try:
            return run()
        finally:
            events.unregister("after-call.dynamodb", unique_id=step)

    chat = counted("admission", lambda: world.start("Counted.", talk.person.id, talk.conversation_id))
    counted("model call", lambda: world.turn(chat, 0))
    counted("summaries", lambda: world.summarise(chat))
    return reads
