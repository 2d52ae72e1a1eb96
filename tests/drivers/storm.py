"""Many chats on the deployed stack while everything around them breaks (docs/faults.md).

Workers are killed, executions stopped; the model's service refuses, cuts and garbles; users cancel, fork and delete;
chats wait for leave, for their client's tools and for answers, and are decided, cancelled or left to their end;
the emulator is restarted; a proxy between the functions and the emulator (``microburst``) throttles requests and loses
answers. Afterwards every chat must satisfy the invariants of the crash matrix, every fork must show the past that it
was created with, and what was deleted must be gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
from botocore.exceptions import ClientError
from dualtrack.api.users import UserPool
from dualtrack.chat.delete_conversation import WRITERS_SECONDS, delete_conversation
from dualtrack.chat.sweep import sweep
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.storage.stores import build_stores
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.profiles import LIBRARY

from tests.clients.stack_client import Person, Root, chats_of
from tests.drivers.conversations import Fork, Told, shown
from tests.drivers.invariants import ENDED, account_faults, chat_faults, what_is_left
from tests.drivers.storm_pauses import HOW, LOOK_UP, WRITE, Plan, asking, effects_of
from tests.servers.processes import free_ports
from tests.servers.provider import model_settings, serve_model
from tests.servers.tool_server import NAME, serve_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.servers.tool_server import ToolServer

FOLLOW_UPS: Final = 0.5
FORKS: Final = 0.5
"""Share of the follow-ups that continue in a fork, made before any of the queries."""

FORKS_OF_RUNNING: Final = 0.15
"""Share of the chats whose conversation is forked while they run."""

DELETIONS: Final = 0.3
"""Share of the chats after which the parent of their conversation is deleted."""

EMPTIED: Final = 3
"""Users, those with the most forks, who delete everything at the end: first what was forked, then the rest."""

AT_ONCE: Final = 8
USERS: Final = 12
GUSTS: Final = 1.0
"""Faults per chat."""

CHATS_TO_A_RESTART: Final = 500
"""The emulator is restarted at least once, and again after this many chats."""

_GOLDEN: Final = 0.618034
"""Its multiples spread evenly, so that a short storm has every kind of message."""

ENOUGH: Final = 20
"""Chats among which some must pause and write, even if the machine is so slow that many are left to the sweep: of ten,
two would pause, and a restart of the emulator may end both."""

PATIENCE: Final = 120.0
"""Seconds for one chat to be admitted, and for the last ones to end."""

STEPS: Final = ("Turn", "Turn", "Summarise", "Tool", "Search", "Mcp", "Api", "Abort")
TROUBLE: Final[tuple[dict[str, Any], ...]] = (
    {"status": 429, "retry_after": 1},
    {"status": 500},
    {"status": 529},
    {"text": "This stream is cut before its end.", "cut_after": 4},
    {"text": "This one stops as if it were complete.", "cut_after": 4, "cut": "end"},
    {"text": "This one is garbled on its way.", "malformed_after": 4},
    {"text": "This one is told that there is too much to do.", "error_after": 4},
    {"text": "This one is slow, but it arrives in the end.", "delay_chunk": 0.3, "chunk": 5},
    {"text": "This one is", "stop_reason": "refusal"},
    {"text": "This one stops for a reason that nobody knows.", "stop_reason": "compaction"},
    {"text": "This one has reached its limit of", "stop_reason": "max_tokens"},
    {"content": [{"type": "tool_use", "name": WRITE, "input_json": '{"na'}], "stop_reason": "max_tokens"},
)
HOSTILE: Final[list[tuple[str, dict[str, Any]]]] = [
    (f"{NAME}_crash", {}),
    (f"{NAME}_picture", {"media_type": "image/png", "data": "no base64"}),
    (f"{NAME}_echo", {"text": "[ID:q1-r] \0\u202e\x1b[2J"}),
]
"""Calls whose results nobody should trust, beside one that writes."""
PROXY_RULES: Final[tuple[dict[str, Any], ...]] = (
    {"service": "dynamodb", "probability": 0.02, "error": {"code": "ThrottlingException", "status": 400}},
    {"service": "dynamodb", "probability": 0.01, "error": {"code": "InternalServerError", "status": 500}},
    {"service": "dynamodb", "probability": 0.01, "response": {"abort_frac": 0.0}},
    {"service": "dynamodb", "probability": 0.01, "reset": True},
    {
        "service": "ssm",
        "probability": 0.05,
        "error": {"code": "InternalServerError", "status": 500},
    },
    {"service": "s3", "probability": 0.05, "error": {"code": "SlowDown", "status": 503}},
)


@dataclass
class Storm:
    """The faults applied to the stack, and their outcome."""

    root: Root
    model: OfflineModel
    tools: ToolServer
    seed: int
    chats: int
    users: list[Person] = field(default_factory=list)
    done_to_it: Counter[str] = field(default_factory=Counter)
    conversations: dict[str, list[str]] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    names: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """Users who call by an API key."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """By marker: of every chat whose call is to write something."""
    placed: dict[str, str] = field(default_factory=dict)
    """By marker: its conversation."""
    asked: int = 0
    ended: int = 0
    answered: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    proxied: Callable[[], Mapping[str, int]] = dict
    """What the proxy has done so far."""

    progress: Callable[[int], None] = lambda _: None
    """Called with the number of chats that are over."""

    enough: threading.Event = field(default_factory=threading.Event)
    """Once set, no further chat begins."""

    def run(self) -> list[str]:
        """Run all chats through the storm. Returns what is wrong afterwards."""
        self.users = [Person(self.root.stack.url, self.root.stack.token(f"user-{n}")) for n in range(USERS)]
        self.names = {user.id: f"user-{n}" for n, user in enumerate(self.users)}
        for user in self.users:
            self.root.grant(user.id)
        for user in self.users[::2]:
            self._use_key(user)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            chats = [pool.submit(self._chat, number) for number in range(self.chats)]
            self._weather(chats)
        for chat in chats:
            chat.result()
        self.model.script.clear()
        self._wait()
        return self._judge()

    def _use_key(self, user: Person) -> None:
        """From now on the user calls by an API key with caps that no storm reaches."""
        caps = {"credits_total": 1_000_000, "dollars_day": 100_000}
        body = {"name": "storm", "scopes": ["chat", "read", "decide", "erase"], "caps": caps}
        made = user.http.post("/v1/keys", json=body).raise_for_status().json()
        user.http.headers["Authorization"] = f"Bearer {made['key']}"
        self.keys.add(user.id)

    # ── users ─────────────────────────────────────────────────────────────────────────────────────

    def _chat(self, number: int) -> None:
        if self.enough.is_set():
            return
        drawn = random.Random(f"{self.seed} chat {number}")
        user = drawn.choice(self.users)
        marker = f"{self._word(user)}-{uuid.uuid4().hex[:12]}"
        plan = Plan(HOW[number % len(HOW)], marker)
        body = self._body(number * _GOLDEN % 1, plan)
        with self.lock:
            self.asked += 1
            known = self.conversations.setdefault(user.id, [])
            conversation = drawn.choice(known) if known and drawn.random() < FOLLOW_UPS else ""
        if conversation and drawn.random() < FORKS:
            conversation = self._fork(user, conversation, drawn) or conversation
        started = self._post(user, body, conversation, marker)
        conversation = started["conversation_id"]
        self.told.note_query(conversation, started["message_id"], body["message"])
        with self.lock:
            known.append(conversation)
            self.placed[marker] = conversation
        if drawn.random() < FORKS_OF_RUNNING:
            self._fork(user, conversation, drawn)
        if drawn.random() < 0.06:
            time.sleep(drawn.random())
            with contextlib.suppress(httpx.HTTPError):
                user.http.delete(started["url"])
                self._count("cancelled by the user")
        status = self._until_ended(user, started["chat_id"], plan, PATIENCE / 4)
        if conversation in self.told.forks and drawn.random() < DELETIONS:
            self._delete(user, self.told.forks[conversation].parent)
        with self.lock:
            self.ended += 1
            self.answered += status == "done"
            self.progress(self.ended)

    def _body(self, kind: float, plan: Plan) -> dict[str, Any]:
        """A new message, by a number below 1: half of them wait for somebody."""
        marker = plan.marker
        if kind < 0.35:
            return {"message": f"{marker}: What is a ledger?"}
        if kind < 0.5:
            return {"message": f"{marker}: How do I set up OAuth for X ads? Look into the documentation."}
        body: dict[str, Any] = {"message": f"{marker}: Please see to it."}
        if kind < 0.6:
            self._script(marker, ("ask_user", {"question": "Which one?", "options": ["This", "That"]}))
            return body
        if kind < 0.7:
            self._script(marker, (LOOK_UP["name"], {"word": "dinghy"}))
            return {**body, "tools": [LOOK_UP]}
        for name in (marker, plan.edited):
            self.tools.gate(name).released.set()
        more = [(f"{NAME}_big", {"megabytes": 1})] if kind < 0.8 else HOSTILE
        self._script(marker, (f"{NAME}_echo", {"text": marker}), (WRITE, {"name": marker}), *more)
        with self.lock:
            self.plans[marker] = plan
        return body

    def _script(self, marker: str, *calls: tuple[str, dict[str, Any]]) -> None:
        asked = [{"type": "tool_use", "name": name, "input": arguments} for name, arguments in calls]
        self.model.script.add({"match": marker, "kind": "turn", "content": asked})

    def _post(self, user: Person, body: dict[str, Any], conversation: str, key: str) -> dict[str, Any]:
        """POST until it is answered, as a client with a key does. What waits in the conversation is cancelled."""
        on_pause: dict[str, Any] = {}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                named = {"conversation_id": conversation} if conversation else {}
                headers = {"Idempotency-Key": f"{key}{conversation}{len(on_pause)}"}
                response = user.http.post("/v1/chats", json={**body, **named, **on_pause}, headers=headers)
            except httpx.HTTPError:
                self._count("no answer to a POST")
                time.sleep(0.5)
                continue
            if response.is_success:
                started: dict[str, Any] = response.json()
                return {"url": f"/v1/chats/{started['chat_id']}", **started}
            if "conversation_paused" in response.text and not on_pause:
                on_pause = {"on_pause": "cancel"}
                self._count("a pause cancelled by the next message")
                continue
            if response.status_code in (404, 409) and conversation:
                conversation = ""
                continue
            if response.status_code == 401:
                self._sign_in(user)
            else:
                assert response.status_code in (429, 500, 502, 503, 504), response.text
            self._count(f"POST answered {response.status_code}")
            time.sleep(0.5)
        raise AssertionError("the chat was never admitted")

    def _fork(self, user: Person, parent: str, drawn: random.Random) -> str:
        """A fork before any query of the conversation; empty if it runs or is being deleted."""
        last = self.told.count(parent) + 1
        before = max(drawn.randint(1, last), drawn.randint(1, last))  # a fork before q1 shares nothing
        answer = self._repeated(
            user, "POST", f"/v1/conversations/{parent}/fork", {"before": f"q{before}"}, key=uuid.uuid4().hex
        )
        self._count(f"fork answered {answer.status_code}")
        if answer.status_code != 201:
            assert answer.status_code in (404, 409), answer.text
            return ""
        fork = str(answer.json()["conversation_id"])
        self.told.note_fork(fork, Fork(parent, before - 1, self._shown(user, fork)))
        with self.lock:
            self.conversations[user.id].append(fork)
        return fork

    def _shown(self, user: Person, conversation: str) -> tuple[str, ...]:
        """What the conversation shows now, repeated until it can be read."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):  # the emulator may be restarting
                return tuple(shown(self.root.stores(), user.id, conversation))
            time.sleep(0.5)
        raise AssertionError("the conversation was never read")

    def _delete(self, user: Person, conversation: str) -> None:
        """Delete it unless a chat is running in it."""
        self.told.note_deletion(conversation)
        deleted = self._repeated(user, "DELETE", f"/v1/conversations/{conversation}", None)
        assert deleted.status_code in (204, 404, 409), deleted.text
        self._count(f"deletion answered {deleted.status_code}")

    def _repeated(self, user: Person, method: str, path: str, body: Any, key: str = "") -> httpx.Response:
        """Repeat a request until its answer is neither throttling nor a failure."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                headers = {"Idempotency-Key": key} if key else {}
                response = user.http.request(method, path, json=body, headers=headers)
                if response.status_code == 401:
                    self._sign_in(user)
                elif response.status_code not in (429, 500, 502, 503, 504):
                    return response
            time.sleep(0.5)
        raise AssertionError(f"{method} {path} was never answered")

    def _sign_in(self, user: Person) -> None:
        """Sign in again, as a client does whose token is refused; a key is never refused."""
        assert user.id not in self.keys
        with contextlib.suppress(Exception):  # the pool may be restarting
            token = self.root.stack.token(self.names[user.id]).token
            user.http.headers["Authorization"] = f"Bearer {token}"

    def _until_ended(self, user: Person, chat_id: str, plan: Plan, seconds: float) -> str:
        """Wait for the end, decide what the chat waits for, and return the status; after the time limit, leave the chat
        to the sweep, as one that nobody decides on."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            chat, calls = None, ()
            with contextlib.suppress(Exception):  # the emulator may be restarting
                chat, turns = self.root.stores().chats.load_with_turns(user.id, chat_id) or (None, ())
                calls = turns[-1].calls if turns else ()
                if chat is None or chat.status in ENDED:
                    return chat.status if chat else ""
            if chat and chat.status == "paused":
                if plan.how == "nobody":
                    return chat.status
                self._decide(user, chat_id, plan, [call for call in calls if call.is_open])
            time.sleep(0.5)
        return ""

    def _decide(self, user: Person, chat_id: str, plan: Plan, calls: Sequence[ToolCall]) -> None:
        """Decide on all open calls, or cancel the chat."""
        url = f"/v1/chats/{chat_id}"
        if plan.how == "cancel":
            self._count(f"pause cancelled: {self._repeated(user, 'DELETE', url, None).status_code}")
            return
        body = {"decisions": [plan.decision(call) for call in calls]}
        answer = self._repeated(user, "POST", f"{url}/decisions", body)
        kinds = ", ".join(sorted({str(call.asks) for call in calls}))
        self._count(f"{plan.how} ({kinds}) answered {answer.status_code}")
        assert answer.status_code in (200, 404, 409, 410), answer.text

    # ── faults ────────────────────────────────────────────────────────────────────────────────────

    def _weather(self, chats: Sequence[Future[None]]) -> None:
        """Runs in the main thread: the stack's processes end with the thread that started them."""
        drawn = random.Random(f"{self.seed} weather")
        gusts, restart_at = 0, min(self.chats // 3, CHATS_TO_A_RESTART)
        while wait(chats, drawn.uniform(0.3, 1.2)).not_done:
            if self.answered >= restart_at:  # on a slow machine others are cancelled or given up before
                restart_at += CHATS_TO_A_RESTART
                self._restart()
            elif gusts >= self.asked * GUSTS:
                continue  # faults are paced by chats, not by the clock of a slow machine
            gusts += 1
            with contextlib.suppress(Exception):  # a fault may fail because of the restart
                self._gust(drawn)

    def _restart(self) -> None:
        self.root.stack.stop()
        self.root.stack.start()
        self._count("emulator restarted")

    def _gust(self, drawn: random.Random) -> None:
        kind = drawn.random()
        if kind < 0.4:
            step = drawn.choice(STEPS)
            self._count(f"{step} killed", self._kill_one(step, drawn))
        elif kind < 0.94:
            trouble = drawn.choice(TROUBLE)
            self.model.script.add({"match": drawn.choice(("turn", "turn", "any")), **trouble})
            self._count("model in trouble")
        else:
            client = self.root.client("stepfunctions")
            running = client.list_executions(stateMachineArn=self.root.machine, statusFilter="RUNNING")[
                "executions"
            ]
            if running:
                client.stop_execution(executionArn=drawn.choice(running)["executionArn"])
                self._count("execution stopped")

    def _kill_one(self, step: str, drawn: random.Random) -> int:
        """Kill one of the processes that run the function, if any."""
        workers = self.root.workers(step)
        if workers:
            os.kill(drawn.choice(workers), signal.SIGKILL)
        return min(1, len(workers))

    def _count(self, what: str, times: int = 1) -> None:
        with self.lock:
            self.done_to_it[what] += times

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────

    def _wait(self) -> None:
        """Wait until all have ended; then sweep as if a quarter of an hour had passed, which ends the pauses as well;
        and once more, for those that go on from there, whose end is waited for."""
        for late in (1, 3):
            self._until(lambda: all(chat.status == "paused" for chat in self._open()), PATIENCE / 4)
            left = Counter("to its end" if chat.status == "paused" else "stuck" for chat in self._open())
            for what, times in left.items():
                self._count(f"left to the sweep, {what}", times)
            if left:
                sweep(self._late(late), self.root.executions(), 600)
        self._until(lambda: not self._open(), PATIENCE)

    @staticmethod
    def _until(true: Callable[[], bool], seconds: float) -> None:
        """Wait for it; what has not come by then is for the invariants to tell."""
        deadline = time.monotonic() + seconds
        while not true() and time.monotonic() < deadline:
            time.sleep(0.5)

    def _late(self, quarters: int = 1) -> Stores:
        """The stores with a clock that is so many quarters of an hour ahead."""
        client, ahead = self.root.client, quarters * WRITERS_SECONDS
        return build_stores(
            self.root.settings, client("dynamodb"), client("s3"), clock=lambda: time.time() + ahead
        )

    def all_chats(self) -> list[Chat]:
        """Every chat that was admitted, except those of deleted conversations."""
        stores = self.root.stores()
        return [chat for user in self.users for chat in chats_of(stores, user.id)]

    def _open(self) -> list[Chat]:
        return [chat for chat in self.all_chats() if chat.status not in ENDED]

    def _judge(self) -> list[str]:
        stores, chats = self.root.stores(), self.all_chats()
        self.done_to_it.update(f"ended {chat.status}" for chat in chats)
        self.done_to_it.update(f"failed: {self._cause(chat)}" for chat in chats if chat.error)
        self.done_to_it.update(self.proxied())
        wrong = [fault for chat in chats for fault in chat_faults(stores, chat)]
        for user in self.users:
            mine = [chat for chat in chats if chat.user == user.id]
            wrong += account_faults(stores, user.id, mine)
        deleted = self._deleted()
        wrong += self._miswritten()
        wrong += self._unrecorded(chats, deleted)
        waited = sum(chat.pauses for chat in chats)
        self._count("pauses", waited)
        if len(chats) >= ENOUGH and waited < len(chats) / 10:
            wrong.append(f"{waited} pauses: this storm proves nothing about them")
        if self.done_to_it["ended done"] < len(chats) / 4:
            wrong.append("hardly a chat was answered: this storm proves nothing about answers")
        if (
            len(chats) + sum(len(self.told.queries.get(conversation, {})) for conversation in deleted)
            < self.asked
        ):
            wrong.append(f"{len(chats)} chats of {self.asked}, {len(deleted)} conversations deleted")
        for user in self.users:
            wrong += self.told.faults(stores, user.id, set(self.conversations.get(user.id, ())))
        for user in self.users[:3]:
            known = [
                conversation
                for conversation in self.conversations.get(user.id, ())
                if conversation not in deleted
            ]
            message = f"{self._word(user)}-last: Does it still work?"
            following = user.ask(message, known[-1] if known else "")
            self.told.note_query(following["conversation_id"], following["message_id"], message)
            if following["status"] != "done":
                wrong.append(f"the next query ended {following['status']}")
        return wrong + self._emptied()

    def _deleted(self) -> set[str]:
        stores = self.root.stores()
        return {
            conversation
            for user in self.users
            for conversation in self.conversations.get(user.id, ())
            if self.told.gone(stores, user.id, conversation)
        }

    def _emptied(self) -> list[str]:
        """What is wrong with forks once their parents are deleted, and what is left once they are deleted too."""
        stores = self.root.stores()
        wrong: list[str] = []
        parents = {fork.parent for fork in self.told.forks.values()}
        users = sorted(self.users, key=lambda user: -len(self._forks(user)))[:EMPTIED]
        for user in users:
            self._delete_all(stores, user, lambda conversation_id: conversation_id in parents)
            wrong += [
                f"its parents deleted: {fault}"
                for fault in self.told.faults(stores, user.id, self._forks(user))
            ]
            self._delete_all(stores, user, lambda _: True)
        pool = UserPool(self.root.client("cognito-idp"), self.root.stack.outputs["UserPoolId"])
        for _ in range(2):  # deletions that waited for the last fork start again
            sweep_deletions(self._late(), self.root.executions(), pool, 600)
        return wrong + [
            leftover for user in users for leftover in what_is_left(stores, user.id, f"{self._word(user)}-")
        ]

    def _forks(self, user: Person) -> set[str]:
        return self.told.forks.keys() & self.conversations.get(user.id, ())

    def _delete_all(self, stores: Stores, user: Person, wanted: Callable[[str], bool]) -> None:
        for conversation in [*stores.conversations.newest(user.id, limit=1000)]:
            if wanted(conversation.conversation_id) and not conversation.is_being_deleted:
                self.told.note_deletion(conversation.conversation_id)
                delete_conversation(stores, user.id, conversation.conversation_id)

    def _word(self, user: Person) -> str:
        """A prefix of all messages of this user and of no other."""
        return f"marker-of-{self.names[user.id]}"

    def _cause(self, chat: Chat) -> str:
        """Why a chat failed: the error shown to the user, and how its execution ended."""
        message = str((chat.error or {})["message"]).split(".")[0]
        try:
            execution = self.root.client("stepfunctions").describe_execution(
                executionArn=self.root.execution_arn(chat.chat_id, number=chat.execution)
            )
        except ClientError:
            return f"{message}; no execution"
        return " ".join([f"{message}; execution", execution["status"], execution.get("error", "")]).strip()

    def _miswritten(self) -> Iterator[str]:
        """What was written twice, or without leave: nobody had approved it, nor its tool for the conversation."""
        allowed = {
            self.placed.get(marker)
            for marker, plan in self.plans.items()
            if plan.how == "allow"
        }  # fmt: skip
        for marker, plan in self.plans.items():
            for name in (marker, plan.edited):
                if (times := self.tools.calls[f"write:{name}"]) > 1:
                    yield f"{name} was written {times} times"
            if plan.withheld and self.tools.calls[f"write:{marker}"] and self.placed[marker] not in allowed:
                yield f"{marker} was written without leave ({plan.how})"

    def _unrecorded(self, chats: Sequence[Chat], deleted: set[str]) -> Iterator[str]:
        """Effects that have no record of a begun call, and records without their effect; not of what was deleted."""
        effects = effects_of(self.root.stores(), chats)
        self._count("writes begun", effects.begun.total())
        self._count("writes that may have been made", (effects.begun - effects.certain).total())
        if len(chats) >= ENOUGH and not effects.certain:
            yield "nothing was written: this storm proves nothing about effects"
        for marker, plan in self.plans.items():
            if self.placed.get(marker) not in deleted:
                for name in (marker, plan.edited):
                    yield from effects.faults(name, self.tools.calls[f"write:{name}"])

    def close(self) -> None:
        """Close every connection of the users and of the account's root."""
        for user in self.users:
            user.http.close()
        for client in self.root._clients.values():
            client.close()

    def report(self) -> str:
        """What was done to the chats and how they ended."""
        return "\n".join(f"{times:7} {what}" for what, times in sorted(self.done_to_it.items()))


class _Stack(LocalStack):
    """The local stack whose functions reach the emulator through a proxy."""

    proxy = ""

    def _clean_environment(self) -> dict[str, str]:
        return {**super()._clean_environment(), "AWS_ENDPOINT_URL": self.proxy}


@contextlib.contextmanager
def storm(state_dir: Path, *, seed: int, chats: int) -> Iterator[Storm]:
    """A fresh stack with its model, tools and proxy, ready to run."""
    profiles = state_dir.with_name("profiles")
    profiles.mkdir(parents=True)
    assistant = json.loads((LIBRARY / "assistant.json").read_text(encoding="utf-8"))
    (profiles / "assistant.json").write_text(json.dumps(asking(assistant)), encoding="utf-8")
    with serve_model() as model, serve_tools() as tools, serve_sample_docs() as documents:
        environment = {
            **model_settings(model),
            "DUALTRACK_PROFILES": str(profiles),
            "CONTEXT7_BASE_URL": documents,
            "MCP_SERVERS": json.dumps([{"name": NAME, "url": tools.url, "price_class": "other"}]),
        }
        stack = _Stack(state_dir, environment=environment)
        with _proxy(stack, state_dir) as rules, stack:
            root = Root(stack, state_dir)
            root.invoke("Mcp", {"action": "refresh"})
            rules.switch_on()
            running = Storm(root, model, tools, seed, chats, proxied=rules.fired)
            try:
                yield running
            finally:
                running.close()


@dataclass(frozen=True, slots=True)
class _Proxy:
    """``microburst``'s control API."""

    url: str

    def switch_on(self) -> None:
        """Apply the rules from now on."""
        rules: Any = list(PROXY_RULES)
        httpx.post(f"{self.url}/_microburst/rules", json=rules, trust_env=False).raise_for_status()

    def fired(self) -> Mapping[str, int]:
        """How often each rule struck."""
        stats = httpx.get(f"{self.url}/_microburst/stats", trust_env=False).raise_for_status().json()
        return {f"proxy: {rule['id']} {rule['describe']}": int(rule["fired"]) for rule in stats["by_rule"]}


@contextlib.contextmanager
def _proxy(stack: _Stack, state_dir: Path) -> Iterator[_Proxy]:
    """``microburst`` before the emulator's port."""
    emulator, port = free_ports(2)
    state_dir.mkdir(parents=True, exist_ok=True)
    (state_dir / "ports.json").write_text(json.dumps({"emulator": emulator}))
    stack.proxy = f"http://127.0.0.1:{port}"
    with (state_dir / "microburst.log").open("wb") as log:
        # The functions sign for the proxy's address; it signs again for the emulator's, as the account's root.
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "microburst",
                "--upstream",
                f"http://127.0.0.1:{emulator}",
                "--port",
                str(port),
                "--resign",
            ],
            env={**os.environ, **stack.credentials.environment()},
            stdout=log,
            stderr=log,
            start_new_session=True,  # the terminal's Ctrl-C must not reach it
        )
    try:
        yield _Proxy(stack.proxy)
    finally:
        process.terminate()
        process.wait(10)
