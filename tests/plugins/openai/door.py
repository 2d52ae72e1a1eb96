"""OpenAI's API in one process: the function `stream` as a server, over a world whose chats run as they are started."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import boto3
import httpx
from dualtrack.api.key_format import digest_of, new_key, new_key_id
from dualtrack.credits.keys import Caps
from dualtrack.storage.dynamo import transact
from dualtrack.storage.keys import ApiKey
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.offline_model import wire
from dualtrack_stack.local.offline_model.script import ScriptedResponse, kind_of

from tests.drivers.documents import ROOT
from tests.drivers.roles import as_role
from tests.drivers.world import SETTINGS, World, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.vocabulary import Scope

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:chat"
DOOR_SETTINGS: Final = replace(
    SETTINGS,
    jwks_url="http://127.0.0.1:9/keys",
    state_machine_arn=MACHINE,
    dualtrack_user_headers=("X-OpenWebUI-User-Id", "X-LibreChat-User"),
    dualtrack_conversation_headers=("X-OpenWebUI-Chat-Id", "X-LibreChat-Conversation"),
    dualtrack_titles="model",
)
"""With the headers of Open WebUI and LibreChat, as docs/clients.md sets them up; titles are held, and made where the
world says so."""
APP = ROOT / "functions" / "stream" / "app.py"


@dataclass
class Machine:
    """Step Functions: an execution runs in a thread of its own; while it is `held`, once it is released. A second start
    of a name starts nothing."""

    world: World
    held: bool = False
    waiting: queue.Queue[Chat] = field(default_factory=queue.Queue)
    running: list[threading.Thread] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def start_execution(self, *, name: str, input: str, **_: Any) -> dict[str, Any]:  # noqa: A002 - boto3's name
        if name in self.names:
            return {}
        self.names.add(name)
        ref = json.loads(input)
        chat = self.world.stores.chats.load(ref["user"], ref["chat_id"])
        assert chat is not None
        self.waiting.put(chat)
        if not self.held:
            self.release()
        return {}

    def release(self) -> None:
        """Run the chat that has waited longest, or the next one that comes."""
        chat = self.waiting.get(timeout=30)
        self.running.append(threading.Thread(target=self._run, args=(chat,), daemon=True))
        self.running[-1].start()

    def stop_execution(self, **_: Any) -> dict[str, Any]:
        return {}

    def _run(self, chat: Chat) -> None:
        try:
            self.world.run(chat)
        except Exception:  # noqa: BLE001 - the machine catches every error of a step
            self.world.abort(chat)

    def wait(self) -> None:
        """Until all have ended, summaries included."""
        for thread in self.running:
            thread.join(30)


@dataclass
class Door:
    """A caller's view of the API, and what it leaves behind."""

    world: World
    machine: Machine
    url: str

    def key(
        self, user: str, *scopes: Scope, for_end_users: bool = False, profiles: Sequence[str] = ()
    ) -> str:
        """A key of the user, stored as the API does."""
        key_id = new_key_id()
        text = new_key(key_id)
        key = ApiKey(
            key_id,
            user,
            "client",
            digest_of(text),
            scopes or ("chat", "read"),
            1,
            for_end_users=for_end_users,
            profiles=tuple(profiles),
        )
        transact(self.world.stores.chats.client, [self.world.stores.keys.create_action(key)])
        self.world.stores.ledger.add_key(user, key_id, Caps(), self.world.clock())
        return text

    def post(
        self,
        key: str,
        messages: Sequence[Mapping[str, Any]],
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> httpx.Response:
        """A chat completion by `assistant`."""
        body = {"model": "assistant", "messages": list(messages), **more}
        return self.send(key, body, headers)

    def send(
        self,
        key: str,
        body: object,
        headers: Mapping[str, str] | None = None,
        path: str = "chat/completions",
    ) -> httpx.Response:
        """Any body."""
        given = {"Authorization": f"Bearer {key}", **(headers or {})}
        return httpx.post(f"{self.url}/openai/v1/{path}", json=body, headers=given, timeout=30)

    def open(self, key: str, body: object) -> contextlib.AbstractContextManager[httpx.Response]:
        """A stream that is open: its chat is admitted."""
        given = {"Authorization": f"Bearer {key}"}
        return httpx.stream(
            "POST", f"{self.url}/openai/v1/chat/completions", json=body, headers=given, timeout=30
        )

    def sent(self) -> list[list[str]]:
        """The texts of each request that the model answered in a turn, in order."""
        self.machine.wait()
        return [
            [block["text"] for message in request.body["messages"] for block in texts_of(message)]
            for request in self.world.model.requests
            if kind_of(wire.Request.model_validate(request.body)) == "turn"
        ]

    def conversations(self, user: str) -> list[Conversation]:
        """The user's, newest first."""
        return list(self.world.stores.conversations.newest(user))


def user(text: object) -> dict[str, Any]:
    """A message of the user's."""
    return {"role": "user", "content": text}


def said(*texts: str) -> list[dict[str, Any]]:
    """Messages: the user's and the answers, in turns."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


def answers(door: Door, *texts: str) -> None:
    """What the model says next, turn by turn."""
    door.world.model.script.add(*(ScriptedResponse(match="turn", text=text) for text in texts))


def text_of(response: httpx.Response) -> str:
    """The text of a whole chat completion."""
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


def texts_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [block for block in message["content"] if block["type"] == "text"]


def pieces(response: httpx.Response) -> list[dict[str, Any]]:
    """The chunks of a stream, which ended as it should."""
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def streamed(response: httpx.Response, what: str = "content") -> str:
    """The text that a stream's chunks add up to."""
    return "".join(
        choice["delta"].get(what) or "" for chunk in pieces(response) for choice in chunk["choices"]
    )


@contextlib.contextmanager
def open_door(**tools: Any) -> Iterator[Door]:
    """A fresh world behind the API; ``tools`` answer in-house tools, as in `make_world`."""
    spec = importlib.util.spec_from_file_location("stream_behind_openai", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with make_world(**tools) as world:
        world.clock.now = time.time()
        machine, stores = Machine(world), world.stores
        app = module.create_app(
            DOOR_SETTINGS,
            as_role(boto3.client("dynamodb", region_name="us-east-1"), "stream"),
            stores.bodies.s3,
            machine,
        )
        with serve_in_thread(app) as url:
            yield Door(world, machine, url)
            machine.wait()
