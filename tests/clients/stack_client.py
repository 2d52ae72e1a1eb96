"""Clients for tests of the deployed stack: a user over HTTP, and the account's root."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from dualtrack.ids import execution_name
from dualtrack.requests import ChatRef
from dualtrack.runtime.executions import Executions
from dualtrack.settings import Settings
from dualtrack.storage.stores import build_stores
from httpx_sse import connect_sse

from tests.clients.documented import assert_event_documented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores
    from dualtrack_stack.local.stack import LocalStack
    from dualtrack_stack.local.tokens import SignedInUser

PATIENCE = 240.0
"""Seconds after which a test gives up waiting; far more than a working stack needs."""

KEYS = {
    "ANTHROPIC_API_KEY": "test-anthropic-key",
    "CONTEXT7_API_KEY": "test-context7-key",
    "VOYAGE_API_KEY": "pa-test-voyage-key",
    "GITHUB_TOKEN": "test-github-token",
}
"""The settings of a stack with a key for every service."""

ENDED = ("done", "failed", "cancelled")
TERMINAL = ("done", "error")


@dataclass(frozen=True, slots=True)
class Received:
    """An event as received."""

    id: int
    kind: str
    data: dict[str, Any]


@dataclass
class Person:
    """A user of the stack: an HTTP client with the user's token."""

    url: str
    identity: SignedInUser
    http: httpx.Client = field(init=False)
    chats: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.identity.token}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False)

    @property
    def id(self) -> str:
        """The token's ``sub``."""
        return self.identity.user_id

    def post(
        self, message: str, conversation_id: str = "", *, key: str = "", wait: str = ""
    ) -> httpx.Response:
        """POST /v1/chats; any answer."""
        body = {"message": message} | ({"conversation_id": conversation_id} if conversation_id else {})
        response = self.http.post(
            "/v1/chats",
            json=body,
            headers={"Idempotency-Key": key} if key else {},
            params={"wait": wait} if wait else {},
        )
        if response.is_success:
            self.chats.append(response.json()["chat_id"])
        return response

    def wait_for_tool(self, message: str, name: str) -> dict[str, Any]:
        """A chat that waits for the result of a tool that its client runs."""
        tool = {"name": name, "description": "Run by the client.", "input_schema": {"type": "object"}}
        response = self.http.post("/v1/chats", json={"message": message, "tools": [tool]})
        assert response.status_code == 202, response.text
        started = self._json(response)
        self.until(started["chat_id"], lambda event: event.kind == "paused")
        return started

    def start(self, message: str, conversation_id: str = "") -> dict[str, Any]:
        """POST /v1/chats → the body of the 202."""
        response = self.post(message, conversation_id)
        assert response.status_code == 202, response.text
        return self._json(response)

    def opened(self, profile: str) -> str:
        """The id of a new conversation with this profile."""
        response = self.http.post("/v1/conversations", json={"profile": profile})
        assert response.status_code == 201, response.text
        return str(response.json()["conversation_id"])

    def get(self, path: str) -> Any:
        """GET → the body of the 200."""
        response = self.http.get(path)
        assert response.status_code == 200, response.text
        return response.json()

    def chat(self, chat_id: str) -> dict[str, Any]:
        """The chat object."""
        return dict(self.get(f"/v1/chats/{chat_id}"))

    def cancel(self, chat_id: str) -> dict[str, Any]:
        """DELETE the chat → the body of the 200."""
        response = self.http.delete(f"/v1/chats/{chat_id}")
        assert response.status_code == 200, response.text
        return self._json(response)

    def stream(self, chat_id: str, after: int = 0) -> Iterator[Received]:
        """One connection to the chat's events, until the server closes it."""
        headers = {"Last-Event-ID": str(after)} if after else {}
        path = f"/v1/chats/{chat_id}/events"
        with connect_sse(self.http, "GET", path, headers=headers) as source:
            assert source.response.status_code == 200, source.response.read()
            for event in source.iter_sse():
                if event.data:
                    received = Received(int(event.id), event.event, json.loads(event.data))
                    assert_event_documented(received.id, received.kind, received.data)
                    yield received

    def events(self, chat_id: str, after: int = 0) -> list[Received]:
        """All events after ``after``, numbered without a gap, the terminal one last."""
        events = list(self.stream(chat_id, after))
        assert [event.id for event in events] == list(range(after + 1, after + 1 + len(events)))
        assert events, "no events"
        assert [event.kind for event in events if event.kind in TERMINAL] == [events[-1].kind]
        return events

    def until(self, chat_id: str, wanted: Callable[[Received], bool]) -> list[Received]:
        """The events up to the first that matches."""
        seen: list[Received] = []
        stream = self.stream(chat_id)
        try:
            for event in stream:
                seen.append(event)
                if wanted(event):
                    return seen
        finally:
            stream.close()  # type: ignore[attr-defined]
        raise AssertionError(f"the stream ended with {[event.kind for event in seen]}")

    def finish(self, chat_id: str) -> dict[str, Any]:
        """The chat object once its events have ended."""
        self.events(chat_id)
        return self.chat(chat_id)

    def ask(self, message: str, conversation_id: str = "") -> dict[str, Any]:
        """Start a chat and wait for its end."""
        return self.finish(self.start(message, conversation_id)["chat_id"])

    def records(self, conversation_id: str, track: str = "full") -> list[dict[str, Any]]:
        """The first page of a conversation's records."""
        path = f"/v1/conversations/{conversation_id}?track={track}"
        return list(self.get(path)["records"])

    def record(self, conversation_id: str, record_id: str) -> dict[str, Any]:
        """One whole record."""
        return dict(self.get(f"/v1/conversations/{conversation_id}/records/{record_id}"))

    def credits(self) -> dict[str, Any]:
        """The balance."""
        return dict(self.get("/v1/credits"))

    def close(self) -> None:
        """End every running chat, so that none affects the next test."""
        for chat_id in self.chats:
            self.http.delete(f"/v1/chats/{chat_id}")
        self.http.close()

    @staticmethod
    def _json(response: httpx.Response) -> dict[str, Any]:
        return dict(response.json())


@dataclass
class Root:
    """The account, with its root's credentials."""

    stack: LocalStack
    state_dir: Path
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A client, created once."""
        if service not in self._clients:
            self._clients[service] = self.stack.aws.client(service)
        return self._clients[service]

    @property
    def machine(self) -> str:
        """The state machine's ARN."""
        return self.stack.outputs["StateMachineArn"]

    @property
    def settings(self) -> Settings:
        """The library's settings: the deployed tables and bucket."""
        outputs = self.stack.outputs
        return Settings(
            history_table=outputs["HistoryTable"],
            chats_table=outputs["ChatsTable"],
            credits_table=outputs["CreditsTable"],
            cache_table=outputs["CacheTable"],
            bodies_bucket=outputs["BodiesBucket"],
            state_machine_arn=self.machine,
        )

    def stores(self) -> Stores:
        """The library's stores over the deployed tables."""
        return build_stores(self.settings, self.client("dynamodb"), self.client("s3"))

    def executions(self) -> Executions:
        """The library's view of the deployed machine."""
        return Executions(self.client("stepfunctions"), self.machine)

    def execution_arn(self, chat_id: str, machine: str = "", number: int = 1) -> str:
        """The execution of a chat with this number; of the deployed machine, or of another."""
        executions = (machine or self.machine).replace(":stateMachine:", ":execution:")
        return f"{executions}:{execution_name(chat_id, number)}"

    def history(self, chat_id: str, machine: str = "") -> list[dict[str, Any]]:
        """The execution's history once it has ended."""
        client, arn = self.client("stepfunctions"), self.execution_arn(chat_id, machine)
        wait_for(lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING")
        events: list[dict[str, Any]] = []
        request: dict[str, Any] = {"executionArn": arn, "maxResults": 1000}
        while True:
            page = client.get_execution_history(**request)
            events += page["events"]
            if not page.get("nextToken"):
                return events
            request["nextToken"] = page["nextToken"]

    def execution_status(self, chat_id: str) -> str:
        """RUNNING, SUCCEEDED …"""
        execution = self.client("stepfunctions").describe_execution(executionArn=self.execution_arn(chat_id))
        return str(execution["status"])

    def invoke(self, name: str, payload: Mapping[str, Any]) -> Any:
        """Invoke a function; its result. An error fails the test."""
        answer = self.client("lambda").invoke(
            FunctionName=f"{self.stack.outputs[f'{name}Function']}:live", Payload=json.dumps(payload).encode()
        )
        body = json.loads(answer["Payload"].read() or b"null")
        assert not answer.get("FunctionError"), body
        return body

    def grant(self, user_id: str) -> None:
        """Grant more credits than any test or bench uses."""
        self.stores().ledger.grant(user_id, f"grant-{uuid.uuid4().hex}", 1_000_000, "for tests", time.time())

    def chat_of(self, person: Person, chat_id: str) -> ChatRef:
        """The payload of a step."""
        return ChatRef(person.id, chat_id, str(person.chat(chat_id)["conversation_id"]))

    def workers(self, name: str) -> list[int]:
        """The processes that run a function, by its name in the templates (``Mcp``): each is in a folder of its own,
        whoever's copy it is."""
        function, here, found = self.stack.outputs[f"{name}Function"], str(self.state_dir), list[int]()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                folder = str((process / "cwd").readlink())
                if function in folder and here in folder:
                    found.append(int(process.name))
        return found

    def kill_workers(self, name: str) -> int:
        """Kill the processes of a function, as when a Lambda sandbox dies; how many there were."""
        pids = self.workers(name)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)


def chats_of(stores: Stores, user: str) -> list[Chat]:
    """Every admitted chat of a user, found by the records of their conversations that are not deleted; of a fork, only
    its own.
    """
    chats: list[Chat] = []
    for conversation in stores.conversations.newest(user, limit=1000):
        if conversation.is_being_deleted:
            continue
        for number in range(conversation.ancestry.through + 1, conversation.queries + 1):
            chat_id = stores.history.chat_of_query(user, conversation.conversation_id, number)
            chat = stores.chats.load(user, chat_id)
            assert chat is not None, chat_id
            chats.append(chat)
    return chats


def announced(name: str, data: bytes) -> dict[str, Any]:
    """A file as a request for an upload address names it."""
    return {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def wait_for(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until the condition is true; another process's state can only be polled."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "timed out waiting for the condition"
        time.sleep(0.05)
