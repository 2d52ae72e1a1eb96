"""A chat's whole life through the real handlers, each invocation in a process that a fault may kill.

The driver is that of tests/drivers/crash_world.py. What differs is what it drives: ``functions/*/handler.py`` in forked
workers (tests/drivers/zygote.py), with the environment and the role of the deployed function, on the tables, bucket,
secrets, key and state machine that the template creates on the emulator, with IAM enforced. Every request of a worker
passes the edge (tests/drivers/wire_edge.py). The state machine's definition is replaced by one that only waits: the
driver is the workflow.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from dualtrack.ids import execution_name, parse_record_id
from dualtrack.storage.stores import build_stores
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.stacks.function_specs import SPECS

from tests.clients.api_client import proxy_event
from tests.clients.stack_client import KEYS, Root, chats_of
from tests.drivers.crash_world import READ, UNKNOWN, Asked, Scenario, StepFailed, World
from tests.drivers.faults import Died, Process, Trace
from tests.drivers.wire_edge import Edge, Named, Request, serve_edge
from tests.drivers.world import FakeClock
from tests.drivers.zygote import HANDLERS, Job, connect
from tests.servers.bedrock import Bedrock
from tests.servers.provider import model_settings, serve_model
from tests.servers.tool_server import NAME, serve_tools
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import httpx2
    from dualtrack.requests import ChatRef
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores
    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.servers.tool_server import ToolServer

TOKEN: Final = "ghp_" + "t" * 36
MONTH: Final = 32 * 86_400.0
WRITTEN: Final = "crash"
_START_SECONDS: Final = 60.0

DOCUMENTATION: Final = Asked("retrieve_documentation", {"query": "How do I set up OAuth for X ads?"})
WRITE: Final = Asked("kit_write", {"name": WRITTEN})
BIG: Final = Asked("kit_big", {"megabytes": 2})
ROUNDS: Final = ((DOCUMENTATION, WRITE, UNKNOWN), (READ,))


@dataclass(frozen=True, slots=True)
class WorkerScenario(Scenario):
    """A scenario of the handlers. ``connected``: the user has given a GitHub token; ``refreshed``: the MCP server's
    tools are listed again before the chat; ``reset``: the month ends after it.
    """

    connected: bool = False
    refreshed: bool = False
    reset: bool = False


SCENARIOS: Final = (
    WorkerScenario("no tools", keyed=True, reset=True),
    WorkerScenario("two rounds of tools", rounds=ROUNDS, charged=20, connected=True, refreshed=True),
    WorkerScenario("two megabytes", rounds=((BIG,),), charged=8),
    WorkerScenario("refused by the model", status="failed", stop="", charged=0, refused_by_model=True),
    WorkerScenario("cancelled after a tool", rounds=ROUNDS, stopped_after="tool q1-t1", status="cancelled", stop="cancelled", charged=18),
    WorkerScenario("past its deadline", rounds=ROUNDS, stopped_after="tool q1-t1", stopped_by="deadline", status="failed", stop="", charged=0),
    WorkerScenario("never started", never_started=True),
    WorkerScenario("vanished before the answer", rounds=ROUNDS, vanishes_after="tool q1-t1", status="failed", stop="", charged=0),
)  # fmt: skip


class Raised(Exception):
    """A handler raised; ``error`` is the error name that the workflow sees."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(text)
        self.error = error


class ShiftedClock(FakeClock):
    """The true time and ``ahead`` seconds: what the workers' clocks show."""

    ahead = 0.0

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return time.time() + self.ahead

    @now.setter
    def now(self, value: float) -> None:
        self.ahead = max(self.ahead, value - time.time())

    def __init__(self) -> None:
        """At the true time."""

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move the clock without waiting."""
        self.now += seconds


class WorkerProcess(Process):
    """One invocation: a process of the operating system."""

    def __init__(self, trace: Trace, step: str, world: WorkerWorld) -> None:
        super().__init__(trace, step)
        self.world = world
        self.pid = 0

    def call(self, service: str, operation: str, detail: str, perform: Callable[[], Any]) -> Any:
        """Make an outside call; in the scenario of a chat that never starts, starting it kills the process."""
        if self.world.scenario.never_started and (self.step, operation) == ("start", "start_execution"):
            self._die()
        return super().call(service, operation, detail, perform)

    def _die(self) -> None:
        self.dead = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        raise Died(self.step)

    def invoke(self, handler: str, event: dict[str, Any]) -> Any:
        """What the handler returns. Raises `Raised` if it raises, `Died` if the process is killed."""
        ground, key = self.world.ground, uuid.uuid4().hex
        ground.edge.processes[key] = self
        try:
            with connect(ground.zygotes[handler]) as connection:
                job = Job(handler, ground.environment(handler, key), event, self.world.clock.ahead)
                connection.send(astuple(job))
                self.pid = connection.recv()
                connection.send("go")
                outcome = connection.recv()
        except (EOFError, ConnectionResetError):
            raise Died(self.step) from None
        finally:
            del ground.edge.processes[key]
        if outcome[0] == "raised":
            raise Raised(*outcome[1:])
        return outcome[1]


@dataclass
class Ground:
    """What all worlds of a run share: the deployed stack, the servers around it, the edge, the zygotes."""

    root: Root
    edge: Edge
    tools: ToolServer
    zygotes: Mapping[str, str]
    """By handler, the address of the zygote that forks its workers."""
    activity: str
    environments: dict[str, dict[str, str]]
    model: OfflineModel
    tokens: dict[str, str] = field(default_factory=dict)

    def environment(self, handler: str, key: str) -> dict[str, str]:
        """The deployed function's environment and credentials, for the worker of this key."""
        values = {**self.environments[handler]}
        values["HTTP_PROXY"] = values["http_proxy"] = self.edge.address_for(key)
        if "MCP_SERVERS" in values:
            servers = json.loads(values["MCP_SERVERS"])
            for server in servers:
                parts = urlsplit(server["url"])
                server["url"] = self.edge.direct_address(key, parts.netloc) + parts.path
            values["MCP_SERVERS"] = json.dumps(servers)
        return values

    def asked(self, request: Request) -> bytes:
        """The body of a request to the model, in the form of the Messages API; on Bedrock after its check."""
        if not isinstance(self.model, Bedrock):
            return request.body
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = urlsplit(request.url).path
        return self.model.gate.admit(request.method, path, headers, request.body)

    def token(self, chat_id: str) -> str:
        """The task token of the parked execution of a chat."""
        while chat_id not in self.tokens:
            task = self.root.client("stepfunctions").get_activity_task(activityArn=self.activity)
            self.tokens[json.loads(task["input"])["chat_id"]] = task["taskToken"]
        return self.tokens.pop(chat_id)

    def forget_documentation(self) -> None:
        """Empty what earlier searches have left in the cache table; listings and connections stay."""
        client, table = self.root.client("dynamodb"), self.root.settings.cache_table
        for page in client.get_paginator("scan").paginate(TableName=table, ProjectionExpression="pk, sk"):
            for item in page["Items"]:
                if item["pk"]["S"].split("#")[0] in ("response", "embedding", "plan"):
                    client.delete_item(TableName=table, Key=item)


@dataclass
class WorkerWorld(World):
    """`World` with the handlers in place of the library's functions."""

    beside: ClassVar = tuple(step for step in World.beside if step != "erase")
    """An erasure takes four sweeps; with handlers it is in tests/e2e/test_erasure.py."""

    ground: Ground = field(kw_only=True)
    clock: ShiftedClock = field(default_factory=ShiftedClock)  # type: ignore[bad-override-mutable-attribute] # never set

    def _prepare(self) -> None:
        self.user = f"ann-{uuid.uuid4().hex[:12]}"
        self.ground.forget_documentation()
        self.ground.tools.gate(WRITTEN).released.set()
        self._use_before(self.look())
        self.conversation_id = ""

    def process(self, step: str) -> WorkerProcess:
        """A worker for one delivery of a step."""
        return WorkerProcess(self.trace, step, self)

    def look(self) -> Stores:
        """The stores as the account's root, without the edge."""
        root = self.ground.root
        return build_stores(root.settings, root.client("dynamodb"), root.client("s3"), self.clock)

    def run(self) -> None:
        """The chat's life, and what the scenario has before and after it."""
        scenario = self.scenario
        assert isinstance(scenario, WorkerScenario)
        if scenario.refreshed:
            self._scheduled("refresh", lambda process: _worker(process).invoke("mcp", {"action": "refresh"}))
        if scenario.connected:
            self._scheduled("connect", self._connect)
        super().run()
        if scenario.reset:
            self.clock.now += MONTH
            self._scheduled("reset", lambda process: _worker(process).invoke("credit_reset", {}))

    def _scheduled(self, step: str, body: Callable[[Process], Any]) -> None:
        """A step outside the workflow; its caller gives up after some retries, and nothing may depend on it."""
        with contextlib.suppress(StepFailed):
            self.state(step, body, 2)

    # ── the functions ─────────────────────────────────────────────────────────────────────────────

    def start(self, message: str, conversation_id: str, process: Process) -> int:
        """POST /v1/chats → the status of the response."""
        body = {"message": message, **({"conversation_id": conversation_id} if conversation_id else {})}
        headers = {"Idempotency-Key": f"key {self.user}"} if self.scenario.keyed else {}
        return int(self._api(process, "POST", "/v1/chats", body, headers)["statusCode"])

    def turn(self, ref: ChatRef, process: Process) -> Any:
        """The Turn state."""
        return _worker(process).invoke("turn", {**_payload(ref), "turn": ref.turn})

    def tool(self, ref: ChatRef, call_id: str, process: Process, fn: str = "tool") -> Any:
        """A branch of the Map."""
        event = {**_payload(ref), "turn": ref.turn, "call": {"id": call_id, "fn": fn}}
        return _worker(process).invoke(fn, event)

    def summarise(self, ref: ChatRef, process: Process) -> Any:
        """The Summarise state."""
        return _worker(process).invoke("summarise", _payload(ref))

    def end(self, ref: ChatRef, error: str, number: int, process: Process) -> Any:
        """The Abort state, or the rule's event."""
        name = execution_name(ref.chat_id, number)
        event: dict[str, Any] = {**_payload(ref), "execution": name, "error": {"Error": error, "Cause": ""}}
        if process.step == "abort by rule":
            detail = {"name": name, "input": json.dumps(_payload(ref)), "status": error, "cause": None}
            event = {"detail": detail}
        return _worker(process).invoke("abort", event)

    def stop(self, ref: ChatRef, process: Process) -> Any:
        """DELETE /v1/chats/{id}."""
        return self._succeed(process, "DELETE", f"/v1/chats/{ref.chat_id}", None)

    def look_at_open_chats(self, process: Process) -> Any:
        """The sweep."""
        return _worker(process).invoke("sweep", {})

    def _connect(self, process: Process) -> Any:
        return self._succeed(process, "PUT", "/v1/connections/github", {"token": TOKEN})

    def _succeed(self, process: Process, method: str, path: str, body: Any) -> Any:
        """A request that the client repeats after a 5xx."""
        answer = self._api(process, method, path, body, {})
        if answer["statusCode"] >= 500:
            raise Raised(str(answer["statusCode"]), answer["body"])
        return answer

    def _api(
        self, process: Process, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> dict[str, Any]:
        claims = {"sub": self.user, "token_use": "id"}
        sent = {"Authorization": "Bearer the-gateway-has-verified-it", **headers}
        event = proxy_event(claims, method, path, None if body is None else json.dumps(body), sent)
        return dict(_worker(process).invoke("api", event))

    # ── requests of a worker to others than AWS ─────────────────────────────────────────────────────

    def answer(
        self, process: Process, request: Request, service: str
    ) -> tuple[Named, Callable[[], httpx2.Response]]:
        """The name of a request, and the function that performs it."""

        def forward() -> httpx2.Response:
            return self.ground.edge.forward(request)

        if service == "model":
            return self._answer_as_model(process, request, forward)
        if service == "mcp":
            body = request.json if request.body else {}
            method = str(body.get("method", request.method))
            named = Named(service, method, str((body.get("params") or {}).get("name", "")))
            return named, lambda: self._run_tool(process, method, forward)
        operation = urlsplit(request.url).path.rsplit("/", 1)[1]
        return Named(service, operation, ""), lambda: self._run_tool(process, operation, forward)

    def _answer_as_model(
        self, process: Process, request: Request, forward: Callable[[], httpx2.Response]
    ) -> tuple[Named, Callable[[], httpx2.Response]]:
        body = request.json
        if process.step.startswith("tool ") and not body.get("stream"):
            return Named("model", "messages", "of a tool"), forward
        detail, perform = self._reply(process, self.ground.asked(request))
        return Named("model", "messages", detail), perform

    def _run_tool(
        self, process: Process, method: str, forward: Callable[[], httpx2.Response]
    ) -> httpx2.Response:
        call_id = process.step.removeprefix("tool ")
        if call_id != process.step:
            recorded = self._has_record(call_id) and not process.held.is_set()
            with self.lock:
                if method == "tools/call":
                    self.tool_runs.append((call_id, recorded))
                elif recorded:
                    self.complaints.append(f"{call_id} was on record, and {method} was asked again")
        return forward()

    def _has_record(self, call_id: str) -> bool:
        record_id = parse_record_id(call_id)
        assert record_id is not None
        history = self.look().history
        return any(
            history.has_record(chat.user, chat.conversation_id, call_id)
            for chat in self.chats()
            if chat.query == record_id.query
        )

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def chats(self) -> list[Chat]:
        """Every chat of the user, oldest first."""
        chats = chats_of(self.look(), self.user)
        return sorted(chats, key=lambda chat: (chat.created_at, chat.query))

    def has_turn(self, chat: Chat, turn: int) -> bool:
        """Whether a turn is on record."""
        return self.look().chats.turn(chat, turn) is not None

    def execution(self, chat_id: str, number: int | None = None) -> str:
        """The status of a chat's execution; "" if there is none."""
        return self.ground.root.executions().status(execution_name(chat_id)) or ""

    def end_execution(self, chat_id: str, status: str, number: int = 1) -> None:
        """The parked execution ends."""
        client, token = self.ground.root.client("stepfunctions"), self.ground.token(chat_id)
        if status == "SUCCEEDED":
            client.send_task_success(taskToken=token, output="{}")
        else:
            client.send_task_failure(taskToken=token, error="Failed", cause="")
        while self.execution(chat_id) == "RUNNING":
            time.sleep(0.005)


def _worker(process: Process) -> WorkerProcess:
    assert isinstance(process, WorkerProcess)
    return process


def _payload(ref: ChatRef) -> dict[str, Any]:
    return {"user": ref.user, "chat_id": ref.chat_id, "conversation_id": ref.conversation_id}


@contextlib.contextmanager
def zygote_of_all(state_dir: Path) -> Iterator[dict[str, str]]:
    """One zygote for every handler, with everything that is installed here."""
    with zygote(state_dir / "zygote", [sys.executable, "-m", "tests.drivers.zygote"]) as address:
        yield dict.fromkeys(HANDLERS, address)


@contextlib.contextmanager
def ground(
    state_dir: Path, zygotes: Callable[[Path], AbstractContextManager[Mapping[str, str]]] = zygote_of_all
) -> Iterator[Ground]:
    """The ground of all worlds, while the block runs."""
    voyage = FakeVoyage(api_key=KEYS["VOYAGE_API_KEY"])
    with (
        serve_model() as model,
        serve_tools() as tools,
        serve_sample_docs() as documents,
        serve_voyage(voyage),
    ):
        servers = [
            {
                "name": NAME,
                "url": tools.url,
                "price_class": "github",
                "auth": {"type": "github_connection"},
            }
        ]
        settings = {
            **KEYS,
            **model_settings(model),
            "CONTEXT7_BASE_URL": documents,
            "VOYAGE_BASE_URL": voyage.url,
            "MCP_SERVERS": json.dumps(servers),
        }
        with LocalStack(state_dir, environment=settings) as stack:
            root = Root(stack, state_dir)
            root.invoke("Mcp", {"action": "refresh"})
            hosts = {
                urlsplit(url).netloc: service
                for url, service in (
                    (stack.endpoint_url, "aws"),
                    (model.url, "model"),
                    (documents, "context7"),
                    (voyage.url, "voyage"),
                    (tools.url, "mcp"),
                )
            }
            edge = Edge(
                hosts,
                lambda process, request, service: _worker(process).world.answer(process, request, service),
            )
            with serve_edge(edge), zygotes(state_dir) as addresses:
                environments = {handler: deployed_environment(root, handler) for handler in HANDLERS}
                yield Ground(root, edge, tools, addresses, _park(root), environments, model)


def deployed_environment(root: Root, handler: str) -> dict[str, str]:
    """A function's deployed environment, and credentials of its role."""
    function = root.client("lambda").get_function_configuration(
        FunctionName=root.stack.outputs[f"{SPECS[handler].construct_id}Function"]
    )
    issued = root.client("sts").assume_role(RoleArn=function["Role"], RoleSessionName="worker")["Credentials"]
    return {
        **function["Environment"]["Variables"],
        "AWS_ACCESS_KEY_ID": issued["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": issued["SecretAccessKey"],
        "AWS_SESSION_TOKEN": issued["SessionToken"],
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": root.stack.endpoint_url,
        "PATH": os.environ["PATH"],
    }


def _park(root: Root) -> str:
    """Make executions wait for the driver, which alone handles chats. Returns the activity's ARN."""
    client = root.client("stepfunctions")
    activity = str(client.create_activity(name="parked")["activityArn"])
    states = {"Parked": {"Type": "Task", "Resource": activity, "End": True}}
    client.update_state_machine(
        stateMachineArn=root.machine, definition=json.dumps({"StartAt": "Parked", "States": states})
    )
    events = root.client("events")
    for rule in events.list_rules()["Rules"]:
        events.disable_rule(Name=rule["Name"])
    scheduler = root.client("scheduler")
    for schedule in scheduler.list_schedules()["Schedules"]:
        scheduler.delete_schedule(Name=schedule["Name"], GroupName=schedule["GroupName"])
    return activity


@contextlib.contextmanager
def zygote(socket: Path, command: Sequence[str], handlers: Sequence[str] = ()) -> Iterator[str]:
    """The address of a running zygote of these handlers, or of all; ``command`` begins the line that starts it."""
    log_file = socket.with_suffix(".log")
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, str(socket), *handlers],
            cwd=Path(__file__).parents[2],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not socket.exists():
            assert process.poll() is None, log_file.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield str(socket)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
