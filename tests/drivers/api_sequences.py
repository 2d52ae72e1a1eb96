"""Random sequences of API requests by several users and an administrator at once (docs/faults.md).

Each answer is checked against `Rules` as it arrives. At the end every chat and every account is checked against the
invariants of the crash matrix, everything is deleted, and nothing may be left.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
from httpx_sse import EventSource

from tests.clients.api_client import Answer, assert_documented
from tests.clients.stack_client import TERMINAL, Person, Root, chats_of
from tests.drivers.api_requests import Asked, Author, Known
from tests.drivers.invariants import ENDED, account_faults, chat_faults, what_is_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dualtrack.storage.chats import Chat
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.servers.tool_server import ToolServer

USERS: Final = 4
BURST: Final = 8
"""Requests that one user has in flight at most."""

PATIENCE: Final = 60.0
"""Seconds for one answer, and for the last chats to end."""

EVENTS: Final = 12
"""A reader of events disconnects after this many, or at the stream's end."""

OPEN_STREAMS: Final = 5
TAIL: Final = 12
"""Requests of the user that are shown with a broken rule."""

RANK: Final = {"running": 0, "answered": 1, "done": 2, "failed": 2, "cancelled": 2}
ALWAYS: Final = frozenset({429, 503})
"""Documented refusals that load alone causes."""


class BrokenRuleError(AssertionError):
    """An answer broke a rule."""


def holds(true: object, rule: str, detail: object = "") -> None:
    """Raise unless the rule holds. ``rule`` names it and is the same each time; ``detail`` is this case."""
    if not true:
        raise BrokenRuleError(f"{rule} | {detail!s:.600}")


@dataclass
class Rules:
    """What one user's answers have shown so far, and what the next one must therefore satisfy."""

    known: Known
    others: list[Known] = field(default_factory=list)
    status: dict[str, str] = field(default_factory=dict)
    """Chat → the latest status seen in an answer."""

    may_fail: dict[str, bool] = field(default_factory=dict)
    by_key: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """Idempotency-Key → the accepted body, and its chat."""

    events: dict[tuple[str, int], str] = field(default_factory=dict)
    entries: dict[str, Any] = field(default_factory=dict)
    streams: int = 0

    def before(self, asked: Asked) -> Before:
        """What is known when the request is sent."""
        with self.known.lock:
            if asked.method == "DELETE" and asked.conversation and not asked.chat:
                self.known.touched.add(asked.conversation)
            return Before(asked.conversation in self.known.gone, dict(self.status))

    def check(self, asked: Asked, before: Before, answer: Answer) -> None:
        """Check every rule for one answer. Raises `BrokenRuleError` for the first that is broken."""
        self._status(asked, before, answer)
        self._form(asked, answer)
        self.only_mine(answer.text)
        with self.known.lock:
            if answer.status < 300 and answer.text:
                self._body(asked, before, answer.json)
            if answer.status == 204 and asked.conversation:
                self.known.gone.add(asked.conversation)

    def _status(self, asked: Asked, before: Before, answer: Answer) -> None:
        expected = asked.expected | ALWAYS
        if asked.conversation:
            with self.known.lock:
                touched = asked.conversation in self.known.touched
            if before.gone:
                expected = ALWAYS | {404, 400, 409 if "Idempotency-Key" in asked.headers else 404}
            elif touched:
                expected |= {404}
        holds(answer.status in expected, f"{asked.method} answers {sorted(expected)}", answer)

    def _form(self, asked: Asked, answer: Answer) -> None:
        try:
            assert_documented(asked.method, asked.path.partition("?")[0], answer)
            code = answer.code if answer.status >= 400 and answer.text else ""
        except Exception as error:  # noqa: BLE001 - a failed check of any kind
            raise BrokenRuleError(
                f"the answer is one of the OpenAPI document | {error!s:.300} {answer}"
            ) from None
        if answer.status == 429:
            holds(answer.headers.get("Retry-After", "").isdecimal(), "429 has Retry-After", answer)
        if code == "insufficient_credits":
            refusal = answer.json["error"]
            holds(0 <= refusal["available"] < refusal["required"], "402 only without credits", refusal)
            holds({"resets_at", "upgrade"} <= set(refusal), "402 says what helps", refusal)

    def only_mine(self, text: str) -> None:
        """The answer has no text of another user and no stored token."""
        for other in self.others:
            holds(other.secret not in text, "nobody reads what is another user's", text)
        holds(f"ghp_{self.known.secret}" not in text, "a token is never returned", text)

    def _body(self, asked: Asked, before: Before, body: Any) -> None:
        if "chat_id" in body and "status" in body:
            self._chat(asked, before, body)
        elif "conversation_id" in body:
            conversation = body["conversation_id"]
            if conversation not in self.known.conversations:
                self.known.conversations.append(conversation)
        elif "conversations" in body or "entries" in body:
            self._listed(body)

    def _chat(self, asked: Asked, before: Before, body: Any) -> None:
        chat, status, conversation = body["chat_id"], body["status"], body["conversation_id"]
        if asked.method == "POST":
            self._started(asked, chat, conversation)
        self.moved(chat, status, before, body.get("error"))

    def moved(self, chat: str, status: str, before: Before, error: object = None) -> None:
        """Check a chat's status in the answer to a request sent when ``before`` was known."""
        first = before.status.get(chat, "running")
        holds(RANK[status] >= RANK[first], "a chat's status never goes back", f"{chat} {first} {status}")
        if RANK[first] == RANK["done"]:
            holds(status == first, "an ended chat stays as it ended", f"{chat} {first} {status}")
        if RANK[status] >= RANK[self.status.get(chat, "running")]:
            self.status[chat] = status
        failed = status == "failed" and not self.may_fail.get(chat, True)
        holds(not failed, "a chat fails only if the model's service refuses it", f"{chat} {error}")

    def _started(self, asked: Asked, chat: str, conversation: str) -> None:
        self.known.chats[chat] = conversation
        self.may_fail[chat] = asked.may_fail
        if conversation not in self.known.conversations:
            self.known.conversations.append(conversation)
        if key := asked.headers.get("Idempotency-Key"):
            sent = json.loads(asked.body or b"{}")
            first = self.by_key.setdefault(key, (sent, chat))
            holds(first == (sent, chat), "a key stands for one body and one chat", f"{key} {chat} {first[1]}")

    def _listed(self, body: Any) -> None:
        if body.get("cursor"):
            self.known.cursors.append(body["cursor"])
        for conversation in body.get("conversations", ()):
            foreign = any(conversation["conversation_id"] in other.conversations for other in self.others)
            holds(not foreign, "nobody lists what is another user's", conversation)
        for entry in body.get("entries", ()):
            first = self.entries.setdefault(entry["entry_id"], entry)
            holds(first == entry, "a line of the ledger never changes", f"{first} {entry}")

    def event(self, chat: str, number: int, kind: str, data: str) -> None:
        """Check that an event belongs to its chat and is the same on every read."""
        self.only_mine(data)
        holds(json.loads(data)["chat_id"] == chat, "an event names its chat", data)
        with self.known.lock:
            first = self.events.setdefault((chat, number), f"{kind} {data}")
        holds(first == f"{kind} {data}", "an event never changes", f"{chat} {number}")


@dataclass(frozen=True, slots=True)
class Before:
    gone: bool
    status: dict[str, str]


@dataclass
class _User:
    """A user's requests, one after the other and in bursts."""

    person: Person
    author: Author
    rules: Rules
    broken: Callable[[_User, Asked, BaseException], None]
    count: Callable[[str], None]
    over: Callable[[], bool]
    last: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL))

    def run(self) -> None:
        """Send requests until the time is up."""
        self.ask(self.author.first())
        with ThreadPoolExecutor(BURST) as pool:
            while not self.over():
                size = self.author.drawn.choice((1, 1, 1, 2, 4, BURST))
                chat = next(reversed(self.author.me.chats), "")
                if size == BURST and chat and self.author.drawn.random() < 0.3:
                    asked = [self.author.stream(chat) for _ in range(size)]
                else:
                    asked = [self.author.draw() for _ in range(size)]
                    if size > 1 and self.author.drawn.random() < 0.4:
                        asked = asked[:1] * size  # the same request, concurrently
                list(pool.map(self.ask, asked))

    def ask(self, asked: Asked) -> None:
        """One request, and the rules for its answer."""
        before = self.rules.before(asked)
        try:
            status = (
                self._stream(asked, before) if asked.path.endswith("/events") else self._call(asked, before)
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the sequence
            self.broken(self, asked, error)
            status = 0
        self.last.append(f"{asked} → {status}")
        self.count(f"{asked.method} {_route(asked.path)} {status}")

    def _request(self, asked: Asked) -> httpx.Request:
        http = self.person.http
        headers = {"Content-Type": "application/json", **asked.headers}
        request = http.build_request(asked.method, "/", content=asked.body, headers=headers)
        request.url = request.url.copy_with(raw_path=asked.path.encode())
        return request

    def _call(self, asked: Asked, before: Before) -> int:
        response = self.person.http.send(self._request(asked))
        self.rules.check(asked, before, _answer(response, response.text))
        return response.status_code

    def _stream(self, asked: Asked, before: Before) -> int:
        response = self.person.http.send(self._request(asked), stream=True)
        try:
            if response.status_code != 200:
                response.read()
                self.rules.check(asked, before, _answer(response, response.text))
            else:
                self.rules._status(asked, before, Answer(200, {}, ""))
                self._read(asked, response)
        finally:
            response.close()
        return response.status_code

    def _read(self, asked: Asked, response: httpx.Response) -> None:
        """Events from the requested id on, without a gap, up to the terminal one at most."""
        holds(asked.chat, "nobody follows what is another user's", asked.path)
        with self.rules.known.lock:
            self.rules.streams += 1
        try:
            holds(self.rules.streams <= OPEN_STREAMS, "at most 5 streams a user", self.rules.streams)
            next_id, ended = int(asked.headers.get("Last-Event-ID") or 0) + 1, False
            for event in EventSource(response).iter_sse():
                if not event.data:
                    continue
                holds(int(event.id) == next_id, "events are numbered without a gap", f"{event.id} {next_id}")
                holds(not ended, "nothing comes behind the terminal event", event.event)
                self.rules.event(asked.chat, next_id, event.event, event.data)
                next_id, ended = next_id + 1, event.event in TERMINAL
                if next_id % EVENTS == 0 or self.over():
                    break
        finally:
            with self.rules.known.lock:
                self.rules.streams -= 1


def _answer(response: httpx.Response, text: str) -> Answer:
    headers = {
        "-".join(part.capitalize() for part in name.split("-")): value
        for name, value in response.headers.items()
    }
    return Answer(response.status_code, headers, text)


def _route(path: str) -> str:
    """The path without ids, for the report."""
    parts = path.partition("?")[0].split("/")
    return "/".join(part if part.isalpha() and len(part) < 20 else "…" for part in parts[1:])


@dataclass
class Sequences:
    """Users sending random requests to a running stack."""

    root: Root
    model: OfflineModel
    tools: ToolServer
    seed: int
    seconds: float
    done: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    """Broken rule → the first case of it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    ends: float = 0.0

    def run(self) -> list[str]:
        """Run all users until the time is up, then check the end state. Returns the broken rules."""
        users = self._users()
        admin = self._admin(users)
        self.ends = time.monotonic() + self.seconds
        try:
            with ThreadPoolExecutor(len(users) + 1) as pool:
                for running in [pool.submit(asking.run) for asking in (*users, admin)]:
                    running.result()
            for user in users:
                self.done.update(user.author.planned)
            self.model.script.clear()
            self.tools.release_all()
            self._judge(users)
        finally:
            for user in (*users, admin):
                user.person.http.close()
        return list(self.wrong.values())

    def report(self) -> str:
        """How often each kind of request had each status."""
        return "\n".join(f"{times:7} {what}" for what, times in sorted(self.done.items()))

    # ── users ─────────────────────────────────────────────────────────────────────────────────────

    def _users(self) -> list[_User]:
        known = [self._known(f"user-{number}") for number in range(USERS)]
        users = []
        for known_user, person in known:
            others = [other for other, _ in known if other is not known_user]
            users.append(self._user(known_user, person, others, f"user {known_user.name}"))
        return users

    def _admin(self, users: list[_User]) -> _User:
        known_admin, person = self._known("administrator", admin=True)
        others = [user.author.me for user in users]
        administrator = self._user(known_admin, person, others, "administrator")
        administrator.author = _Administrator(**vars(administrator.author))
        return administrator

    def _known(self, name: str, *, admin: bool = False) -> tuple[Known, Person]:
        drawn = uuid.uuid4().hex[:12]
        identity = self.root.stack.token(f"{name}-{drawn}", admin=admin)
        person = Person(self.root.stack.url, identity)
        person.http.timeout = httpx.Timeout(PATIENCE)
        return Known(person.id, name, f"secret{drawn}"), person

    def _user(self, me: Known, person: Person, others: list[Known], name: str) -> _User:
        def let_go(name_of_call: str) -> None:
            self.tools.gate(name_of_call).released.set()

        author = Author(random.Random(f"{self.seed} {name}"), me, others, self.model.script, let_go)
        rules = Rules(me, others)
        return _User(person, author, rules, self._broken, self._count, lambda: time.monotonic() > self.ends)

    def _broken(self, user: _User, asked: Asked, error: BaseException) -> None:
        what = (
            str(error)
            if isinstance(error, BrokenRuleError)
            else f"no answer: {type(error).__name__} | {error}"
        )
        requests = "\n    ".join([*user.last, str(asked)])
        self._add(what, f"{user.author.me.name}\n    {requests}")

    def _add(self, what: str, sequence: str = "") -> None:
        rule, _, detail = what.partition(" | ")
        with self.lock:
            self.done[f"BROKEN {rule}"] += 1
            self.wrong.setdefault(rule, f"{rule}\n  {detail}\n  {sequence}".rstrip())

    def _count(self, what: str) -> None:
        with self.lock:
            self.done[what] += 1

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────

    def _judge(self, users: list[_User]) -> None:
        stores = self.root.stores()
        deadline = time.monotonic() + PATIENCE
        while self._open(users) and time.monotonic() < deadline:
            time.sleep(0.5)
        for user in users:
            me, chats = user.author.me, chats_of(stores, user.person.id)
            self._count_endings(user, chats)
            for chat in chats:
                self._all(chat_faults(stores, chat), me)
            self._all(account_faults(stores, me.id, chats), me)
            self._all(_grants(stores.ledger.movements(me.id)), me)
        self._all(self._mixed([user.author.me for user in users]))
        for user in users:
            self._all(self._delete(user), user.author.me)
            self._all(what_is_left(stores, user.person.id, user.author.me.secret), user.author.me)

    def _all(self, faults: Iterable[str], whose: Known | None = None) -> None:
        for fault in faults:
            # the rule is the text without the chat that it names
            chat, colon, said = fault.partition(": ")
            self._add(f"{said if colon else fault} | {chat}", whose.name if whose else "")

    def _open(self, users: list[_User]) -> list[Chat]:
        stores = self.root.stores()
        return [
            chat for user in users for chat in chats_of(stores, user.person.id) if chat.status not in ENDED
        ]

    def _count_endings(self, user: _User, chats: list[Chat]) -> None:
        for chat in chats:
            self._count(f"chats {chat.status}")
            if chat.status == "failed" and not user.rules.may_fail.get(chat.chat_id, True):
                self._add(
                    f"a chat fails only if the model's service refuses it | {chat.chat_id} {chat.error}"
                )

    def _mixed(self, everybody: list[Known]) -> Iterable[str]:
        """No request to the model contains two users' texts."""
        for request in self.model.requests:
            text = json.dumps(request.body)
            if sum(user.secret in text for user in everybody) > 1:
                yield f"{request.path}: the model was sent two users' words in one request"

    def _delete(self, user: _User) -> Iterable[str]:
        http = user.person.http
        while (
            listed := http.get("/v1/conversations", params={"limit": 100})
            .raise_for_status()
            .json()["conversations"]
        ):
            for conversation in listed:
                answer = http.delete(f"/v1/conversations/{conversation['conversation_id']}")
                if answer.status_code != 204:
                    yield f"{conversation['conversation_id']}: deletion at the end answers {answer.status_code}"
                    return


class _Administrator(Author):
    """Draws an administrator's requests."""

    def first(self) -> Asked:
        """A grant, a plan or a look."""
        return self.administer()

    def draw(self) -> Asked:
        """The next request."""
        return self.administer() if self.drawn.random() < 0.9 else self.malformed()


def _grants(movements: Iterable[Any]) -> Iterable[str]:
    """A grant's id counts once for a user; the reason repeats the id."""
    counts = Counter(movement.reason for movement in movements if movement.kind == "grant")
    for grant, times in counts.items():
        if times > 1:
            yield f"{grant}: a grant counts once, whatever is repeated"
