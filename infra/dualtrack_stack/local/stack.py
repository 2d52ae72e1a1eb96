"""The whole stack on this machine: the template that goes to AWS, deployed to an emulator.

``LocalStack`` starts the emulator, the offline stand-ins for services without a key, and the front port;
synthesises (or takes from the cache) and deploys the local stage; puts keys into its Parameter Store.
All state is in one folder and survives a restart; no process outlives this one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import http.client
import json
import os
import select
import shutil
import socket
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from dualtrack_stack.local.account_state import OBJECTS, STATE, take_up
from dualtrack_stack.local.credentials import Credentials
from dualtrack_stack.local.forks import FORKS
from dualtrack_stack.local.front_config import FrontConfig
from dualtrack_stack.local.login import login_name
from dualtrack_stack.local.outside import Outside, outside_from
from dualtrack_stack.local.private import make_private, write_private
from dualtrack_stack.local.processes import Child, ChildDied, Children
from dualtrack_stack.local.saved import FileStates, WatchedFolders, look
from dualtrack_stack.local.started_with import started_with
from dualtrack_stack.local.workers import WARM_SECONDS, account_concurrency
from dualtrack_stack.project.model import BadProject
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from dualtrack.storage.stores import Stores
    from dualtrack_stack.local.aws import Aws
    from dualtrack_stack.local.deploy import StackOutputs
    from dualtrack_stack.local.stdio_servers import Bridged
    from dualtrack_stack.local.tokens import LocalUsers, SignedInUser
    from dualtrack_stack.project.model import Project

    Report = Callable[[str], None]

HOST: Final = "127.0.0.1"
EMULATOR = "dualtrack_stack.local.emulator"
RUNNER_FILE: Final = "dev.json"
"""Written by a stack that serves: ``{"url", "pid", "root", "profiles", "seen", "problem", "variables",
"started_with"}``. ``seen`` is the digest of what it has taken up of the files in the two folders, ``problem`` what was
wrong with it. ``variables`` are those of the environment that it reads (`dualtrack_stack.local.started_with`)."""
LOCAL_GRANT: Final = ("local-start", 1_000)
"""``grant_id`` and credits of the first grant of the stack's own user (CONTRACT 8)."""
GUESTS_FILE: Final = "guests"
"""Share-locked by every command that uses the stack; exclusively locked by a stack that is ending. Each request to the
stack touches it."""
LOCK_FILE: Final = "lock"
"""Locked by the process that runs the stack, from before its start until after its end."""
KEYS_FILE: Final = "aws.env"
"""How a shell reaches the emulated account while the stack runs: ``. .dualtrack/aws.env``."""
GATEWAY_STAGE: Final = "live"
# a busy machine takes its time; whoever waits is told at once of a child that has died
START_SECONDS: Final = 180.0
_ANSWER_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.2

_EMULATED: Final = (
    "apigateway",
    "cloudformation",
    "cognito-idp",
    "dynamodb",
    "events",
    "iam",
    "kms",
    "lambda",
    "logs",
    "monitoring",
    "s3",
    "scheduler",
    "secretsmanager",
    "sns",
    "sqs",
    "ssm",
    "states",
    "sts",
)


class CannotStart(RuntimeError):
    """The local stack cannot start; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Paths:
    """Paths in the state folder."""

    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def ports(self) -> Path:
        return self.root / "ports.json"

    @property
    def runner(self) -> Path:
        return self.root / RUNNER_FILE

    @property
    def keys(self) -> Path:
        return self.root / KEYS_FILE

    @property
    def guests(self) -> Path:
        return self.root / GUESTS_FILE

    @property
    def lock(self) -> Path:
        return self.root / LOCK_FILE

    def prepare(self, *, reset: bool) -> None:
        """Make the folder; with ``reset`` everything in it but the lock is deleted."""
        stale = [path for path in self.root.iterdir() if path != self.lock] if reset else [self.root / "tmp"]
        for path in stale:
            if path.is_dir() and not path.is_symlink():
                while path.exists():  # what is left of a killed stack may be removing files too
                    with contextlib.suppress(FileNotFoundError):
                        shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        (self.root / "tmp").mkdir(mode=0o700)


@dataclass(slots=True)
class _Running:
    """What a started stack consists of."""

    lock: int
    listener: socket.socket
    children: Children
    url: str
    aws: Aws | None = None
    deployed: StackOutputs | None = None
    tokens: LocalUsers | None = None
    outside: Outside | None = field(default=None)
    front: Child | None = None
    profiles: list[dict[str, Any]] = field(default_factory=list)
    began_with: Project | None = None
    later: tuple[str, ...] = ()
    assembly: Path = field(default_factory=Path)
    secrets: tuple[str, ...] = ()
    seen: FileStates = field(default_factory=lambda: FileStates({}))


class LocalStack:
    """A context manager that returns a running stack.

    ``port`` 0 takes any free one (the last one if it is still free). ``environment`` has the settings of CONTRACT 2
    (default: this process's). ``report`` is called with each step of the start. Raises `CannotStart` with a message for
    the user.
    """

    def __init__(
        self,
        state_dir: Path | str,
        *,
        port: int = 0,
        reset: bool = False,
        environment: Mapping[str, str] | None = None,
        report: Report | None = None,
    ) -> None:
        self._paths = _Paths(Path(state_dir).resolve())
        self._root = project_root()
        self._port = port
        self._reset = reset
        self._environment = dict(os.environ if environment is None else environment)
        self._report = report or (lambda _step: None)
        self._running: _Running | None = None
        self._credentials = Credentials.random()
        self._user = login_name()
        self.seconds_to_ready = 0.0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The front port, ``http://127.0.0.1:PORT``."""
        return self._now.url

    @property
    def aws(self) -> Aws:
        """Clients of the emulated account, as its root."""
        assert self._now.aws is not None
        return self._now.aws

    @property
    def endpoint_url(self) -> str:
        """The emulator's address, for boto3."""
        return self.aws.endpoint_url

    @property
    def credentials(self) -> Credentials:
        """The root's credentials of the emulated account, for this run alone."""
        return self._credentials

    @property
    def outputs(self) -> Mapping[str, str]:
        """The outputs of all stacks: ``ChatsTable``, ``StateMachineArn``, ``TurnFunction`` …"""
        assert self._now.deployed is not None
        return self._now.deployed.outputs

    @property
    def mode(self) -> str:
        """``offline`` if the built-in offline model answers, else ``live``."""
        assert self._now.outside is not None
        return self._now.outside.mode

    @property
    def seen(self) -> FileStates:
        """The project's files as they were when the stack started."""
        return self._now.seen

    def saved(self) -> FileStates:
        """The project's files as they are."""
        return look(self._watched())

    def read(self) -> Project:
        """The project as it is saved. Raises `BadProject`."""
        from dualtrack_stack.project.read import read_project  # noqa: PLC0415 - loads pydantic

        return read_project(self._root, environ=self._environment)

    def deploy(self, project: Project) -> StackOutputs:
        """Deploy what has changed, and let the processes beside the functions know. Raises `BadProject` for settings
        that need what is not there, and `DeployFailed`.
        """
        from dualtrack_stack.local.deploy import deploy  # noqa: PLC0415 - loads botocore
        from dualtrack_stack.local.own import put_secrets  # noqa: PLC0415

        now, own = self._now, project.own("local")
        assert now.outside is not None
        before, (outside, later) = now.outside, now.outside.renewed(self._given(project))
        if problem := outside.problem():
            raise BadProject(problem)
        if own.secrets != now.secrets:  # those that are not set are said once
            for name in put_secrets(self.aws, own, outside.given):
                self._report(f"The tools' secret {name} is not set: give it in the environment")
            now.secrets = own.secrets
        now.deployed = deploy(self.aws, now.assembly, outside.parameters(), project)
        now.outside, now.later = outside, (*later, *_other_fields(now.began_with, project))
        profiles = [json.loads(path.read_bytes()) for path in project.profiles]
        is_shown = (outside.status(), profiles) == (before.status(), now.profiles)
        now.profiles = profiles
        if now.front and not is_shown:
            self._configure_front(now.front, outside)
        if outside.settings.mcp_servers != before.settings.mcp_servers:
            self._list_tools()
        return now.deployed

    @property
    def notes(self) -> tuple[str, ...]:
        """What the project's notes were at the start."""
        return self._now.began_with.notes if self._now.began_with else ()

    @property
    def later(self) -> tuple[str, ...]:
        """The settings that differ from those of the start and count from the next one on."""
        return self._now.later

    def _given(self, project: Project) -> Mapping[str, str]:
        from dualtrack_stack.settings import configured  # noqa: PLC0415 - loads pydantic

        return {**self._environment, **configured(project, "local", self._environment).given}

    def announce(self, seen: FileStates, problem: str = "") -> None:
        """Tell the commands of the state folder what has been taken up, and what is wrong with it."""
        watched, variables = self._watched(), self._variables()
        told = {
            "url": self.url,
            "pid": os.getpid(),
            "root": str(watched.root),
            "profiles": str(watched.profiles),
            "seen": seen.digest(),
            "problem": problem,
            "variables": variables,
            "started_with": started_with(variables, self._environment),
        }
        write_private(self._paths.runner, json.dumps(told))

    def _variables(self) -> list[str]:
        """The variables of the environment that this stack reads."""
        assert self._now.outside is not None
        return [*self._now.outside.variables(), *self._now.secrets]

    def _watched(self) -> WatchedFolders:
        from dualtrack_stack.profiles import profiles_folder  # noqa: PLC0415 - loads pydantic

        assert self._now.outside is not None
        return WatchedFolders(self._root, profiles_folder(self._now.outside.settings, self._root).resolve())

    def token(self, user: str, *, admin: bool = False) -> SignedInUser:
        """An ID token of the local pool; the user is created if none has that name."""
        assert self._now.tokens is not None
        return self._now.tokens.identity(user, admin=admin)

    def works(self) -> bool:
        """Whether a workflow runs: a chat, its summaries, a job of a corpus."""
        states = self.aws.client("stepfunctions")
        machines = states.list_state_machines()["stateMachines"]
        arns = [machine["stateMachineArn"] for machine in machines]
        return any(
            states.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"] for arn in arns
        )

    def check(self) -> None:
        """Raise `ChildDied` if a process of the stack has ended."""
        self._now.children.check()

    @property
    def _now(self) -> _Running:
        if self._running is None:
            raise RuntimeError("The local stack is not running.")
        return self._running

    def start(self) -> None:
        """Start everything and wait until it serves."""
        began = time.monotonic()
        lock = _lock(self._paths)
        try:
            self._paths.prepare(reset=self._reset)
            if told := take_up(self._paths.root):
                self._report(told)
            listener = self._listen()
        except BaseException:
            os.close(lock)
            raise
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        self._running = _Running(lock, listener, Children(self._paths.logs), url)
        try:
            self._bring_up()
        except ChildDied as died:
            self.stop()
            raise CannotStart(str(died)) from died
        except BaseException:
            self.stop()
            raise
        self.seconds_to_ready = time.monotonic() - began

    def kill(self) -> None:
        """End every process at once. What the emulator would save is lost."""
        self._now.children.kill()
        self.stop()

    def stop(self) -> None:
        """End every process; the emulator saves its state first."""
        running, self._running = self._running, None
        if running is None:
            return
        for path in (self._paths.runner, self._paths.keys):
            path.unlink(missing_ok=True)
        running.children.stop()
        running.listener.close()
        os.close(running.lock)

    def _listen(self) -> socket.socket:
        wanted = self._port or _Ports(self._paths).last("front")
        try:
            return _bind(wanted)
        except OSError as taken:
            if self._port:
                raise CannotStart(
                    f"Port {self._port} is taken by another program. "
                    "Choose one with --port, or --port 0 for any free one."
                ) from taken
            return _bind(0)

    def _bring_up(self) -> None:
        from dualtrack_stack.local.synth import NoCdk, Synthesis  # noqa: PLC0415 - the light part of this module starts fast

        now = self._now
        try:
            prepared = Synthesis()
        except NoCdk as problem:
            raise CannotStart(str(problem)) from problem
        with prepared as synthesis:
            self._report("Starting the emulated account")
            if not synthesis.cached:
                self._report("Synthesising the templates (once for each change of the infrastructure)")
            ports = _Ports(self._paths)
            ports.remember(front=now.listener.getsockname()[1])
            outside, bridged = self._outside(ports)
            now.outside = outside
            now.seen = self.saved()
            emulator = self._start_emulator(ports.of("emulator"), outside)
            now.front = self._start_front()
            now.outside = outside.with_stand_ins(self._start_stand_ins(outside, ports))
            import dualtrack_stack.local.deploy  # noqa: PLC0415, F401 - loads botocore while the children start

            self._await_emulator(emulator, ports.of("emulator"))
            now.assembly = synthesis.assembly()
        self._deploy(ports.of("emulator"), now.outside)
        write_private(self._paths.keys, _exports(self.aws))
        self._publish_samples()
        self._grant_to_own_user()
        self._configure_front(now.front, now.outside)
        self._await_serving()
        self._sweep()
        self._await_bridged(bridged)
        self._list_tools()
        self.announce(now.seen)

    def _outside(self, ports: _Ports) -> tuple[Outside, list[Bridged]]:
        """The services that the settings select, and the MCP servers by command, which have been started."""
        from dualtrack_stack.local.stdio_servers import missing_secrets, start_bridges  # noqa: PLC0415 - as below
        from dualtrack_stack.settings import read_settings  # noqa: PLC0415 - loads pydantic

        try:
            configuration = read_settings("local", self._environment, self._root)
            outside = outside_from({**self._environment, **configuration.given})
        except ValueError as wrong:  # an invalid setting
            raise CannotStart(str(wrong)) from wrong
        if problem := outside.problem():
            raise CannotStart(problem)
        for line in missing_secrets(configuration.stdio, self._environment):
            self._report(line)
        clean, children = self._clean_environment(), self._now.children
        bridged = [*start_bridges(children, configuration.stdio, ports.of, clean, self._environment)]
        return outside.with_servers(tuple(one.server for one in bridged)), bridged

    def _await_bridged(self, bridged: Sequence[Bridged]) -> None:
        """Wait for the servers by command; one that does not begin is named, and stops nothing."""
        for one in bridged:
            self._report(f"Starting the MCP server {one.server.name}")
            if problem := one.problem():
                self._report(f"The MCP server {problem}: see {self._paths.logs}/mcp-{one.server.name}.log")

    def _start_emulator(self, port: int, outside: Outside) -> Child:
        root = self._paths.root
        return self._now.children.start(
            "emulator",
            EMULATOR,
            *outside.origins(),
            environment={
                **self._clean_environment(),
                "AUTH": "true",  # signatures and IAM policies are checked
                "BIND_HOST": HOST,
                "GATEWAY_PORT": str(port),
                "PERSIST_STATE": "1",
                "STATE_DIR": str(root / STATE),
                "S3_PERSIST": "1",
                "S3_DATA_DIR": str(root / OBJECTS),
                "SERVICES": ",".join(_EMULATED),
                "LAMBDA_ACCOUNT_CONCURRENCY": str(account_concurrency()),
                "LAMBDA_WARM_TTL_SECONDS": str(WARM_SECONDS),
                "SFTP_ENABLED": "0",
                "IOT_MTLS_ENABLED": "0",
                "DOCKER_HOST": f"unix://{root}/no-docker.sock",
                **self.credentials.environment(),
            },
        )

    def _start_front(self) -> Child:
        descriptor = self._now.listener.fileno()
        return self._now.children.start(
            "front",
            "dualtrack_stack.local.front",
            str(descriptor),
            environment=self._clean_environment(),
            keep_open=(descriptor,),
        )

    def _start_stand_ins(self, outside: Outside, ports: _Ports) -> dict[str, str]:
        """The offline model and the sample documents, for services without a key or an address."""
        urls: dict[str, str] = {}
        for name, module in outside.stand_ins():
            port = ports.of(name)
            self._now.children.start(name, module, "--port", str(port), environment=self._clean_environment())
            urls[name] = f"http://{HOST}:{port}"
        return urls

    def _await_emulator(self, emulator: Child, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            emulator.check()
            if answers(port, "/_ministack/health"):
                return
            time.sleep(0.02)
        raise CannotStart(f"The emulated account did not start; see {emulator.log}.")

    def _deploy(self, port: int, outside: Outside) -> None:
        from dualtrack_stack.local.aws import Aws  # noqa: PLC0415 - loads botocore, while the children start
        from dualtrack_stack.local.tokens import LocalUsers  # noqa: PLC0415

        self._report("Deploying")
        now = self._now
        try:
            project = self.read()
        except BadProject as problem:
            raise CannotStart(str(problem)) from problem
        now.began_with = project
        for note in project.notes:
            self._report(note)
        now.aws = Aws(f"http://{HOST}:{port}", self.credentials)
        outputs = self.deploy(project).outputs
        now.tokens = LocalUsers(now.aws, outputs["UserPoolId"], outputs["UserPoolClientId"])
        _put_keys(now.aws, outputs, outside.keys())

    def _configure_front(self, front: Child, outside: Outside) -> None:
        outputs = self.outputs
        stream = self.aws.client("lambda").get_function_configuration(FunctionName=outputs["StreamFunction"])
        config = FrontConfig(
            endpoint_url=self.endpoint_url,
            access_key=self.credentials.access_key,
            secret_key=self.credentials.secret_key,
            rest_api_id=outputs["RestApiId"],
            gateway_stage=GATEWAY_STAGE,
            user_pool_id=outputs["UserPoolId"],
            client_id=outputs["UserPoolClientId"],
            stream_role_arn=outputs["StreamRoleArn"],
            stream_environment={
                **stream["Environment"]["Variables"],
                # the pool's keys are the emulator's
                "JWKS_URL": f"{self.endpoint_url}/{outputs['UserPoolId']}/.well-known/jwks.json",
            },
            user=self._user,
            status={**outside.status(), "user": self._user},
            origins=outside.origins(),
            profiles=self._now.profiles,
            used=str(self._paths.guests),
        )
        front.send(json.dumps(dataclasses.asdict(config)).encode())

    def _await_serving(self) -> None:
        """Wait for the whole path: front port, gateway, function; the function starts while the front does. ``/health``
        is answered by the gateway.
        """
        assert self._now.deployed is not None
        emulator = int(self.endpoint_url.rsplit(":", 1)[1])
        answers(
            emulator,
            f"/_aws/execute-api/{self.outputs['RestApiId']}/{GATEWAY_STAGE}/openapi.json",
            self.check,
        )
        port = self._now.listener.getsockname()[1]
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            if answers(port, "/openapi.json", self.check):
                return
            time.sleep(0.05)
        raise CannotStart(f"The API does not answer; see {self._paths.logs}.")

    def _sweep(self) -> None:
        """Run the sweep now and not in five minutes: it ends or continues what the last run left behind."""
        assert self._now.deployed is not None
        if not self._now.deployed.fresh:
            self.aws.client("lambda").invoke(
                FunctionName=f"{self.outputs['SweepFunction']}:live",
                InvocationType="Event",
                Payload=b'{"source": "start"}',
            )

    def _list_tools(self) -> None:
        """List the tools of the MCP servers before the first chat, not with the next hourly listing."""
        assert self._now.outside is not None
        if json.loads(self._now.outside.settings.mcp_servers):
            self._report("Listing the tools of the MCP servers")
            self.aws.client("lambda").invoke(
                FunctionName=f"{self.outputs['McpFunction']}:live", Payload=b'{"action": "refresh"}'
            )

    def _publish_samples(self) -> None:
        """Publish sample course materials and a sample graph if nothing was published before."""
        stores = self._stores()
        if stores.corpora.current("courses") is None:
            from dualtrack_stack.local import sample_courses  # noqa: PLC0415 - loads numpy

            sample_courses.publish(stores)
        if stores.corpora.current("graph") is None:
            from dualtrack_stack.local.sample_graph import publish  # noqa: PLC0415 - loads the engine

            publish.publish(stores)

    def _grant_to_own_user(self) -> None:
        """Takes effect once per state folder: a repeated grant changes nothing."""
        assert self._now.tokens is not None
        grant_id, amount = LOCAL_GRANT
        user_id = self._now.tokens.user_id(self._user)
        self._stores().ledger.grant(user_id, grant_id, amount, "to begin with", time.time())

    def _stores(self) -> Stores:
        from dualtrack.settings import Settings  # noqa: PLC0415 - the light part of this module starts fast
        from dualtrack.storage.stores import build_stores  # noqa: PLC0415

        outputs = self.outputs
        settings = Settings(
            history_table=outputs["HistoryTable"],
            credits_table=outputs["CreditsTable"],
            bodies_bucket=outputs["BodiesBucket"],
        )
        return build_stores(settings, self.aws.client("dynamodb"), self.aws.client("s3"))

    def _clean_environment(self) -> dict[str, str]:
        """No key and no AWS setting of this machine reaches a child: functions read their own secrets."""
        kept = (
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "TZ",
            "PYTHONPATH",
            "VIRTUAL_ENV",
            "SSL_CERT_FILE",
            "COVERAGE_PROCESS_START",
            "SFN_WAIT_SCALE",  # the emulator's own: how long its workflows wait, 1 by default
            FORKS,
        )
        settings = {name: os.environ[name] for name in kept if name in os.environ}
        return {**settings, "PYTHONUNBUFFERED": "1", "TMPDIR": str(self._paths.root / "tmp")}


class _Ports:
    """Ports that stay the same from start to start as long as they are free."""

    def __init__(self, paths: _Paths) -> None:
        self._paths = paths
        self._known: dict[str, int] = {}
        with contextlib.suppress(OSError, ValueError):  # absent or damaged: choose new ones
            self._known = {str(name): int(port) for name, port in json.loads(paths.ports.read_text()).items()}
        self._given: dict[str, int] = {}

    def last(self, name: str) -> int:
        """The port of the last start, 0 if there was none."""
        return self._known.get(name, 0)

    def of(self, name: str) -> int:
        """The port of a child: the last one, or a free one."""
        if name not in self._given:
            self._given[name] = free_port(self.last(name))
            self.remember()
        return self._given[name]

    def remember(self, **ports: int) -> None:
        self._given.update(ports)
        write_private(self._paths.ports, json.dumps({**self._known, **self._given}))


def _lock(paths: _Paths) -> int:
    """The exclusive lock of the state folder, until the descriptor is closed."""
    make_private(paths.root)
    descriptor = os.open(paths.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as held:
        os.close(descriptor)
        raise CannotStart(
            f"A local stack already uses {paths.root}. Use it, stop it, or choose another --state-dir."
        ) from held
    return descriptor


def _bind(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def free_port(preferred: int = 0) -> int:
    """The preferred port if nothing listens there, else any free one. Raises `CannotStart` if there is none."""
    for port in (preferred, 0):
        with contextlib.suppress(OSError), _bind(port) as probe:
            return int(probe.getsockname()[1])
    raise CannotStart("There is no free port on the loopback interface.")


def answers(port: int, path: str, while_waiting: Callable[[], None] | None = None) -> bool:
    """Whether a server on this machine answers with 200.

    A dead child leaves its connections unanswered, so an attempt ends after `_ANSWER_SECONDS`. With ``while_waiting``,
    which raises if the server has died, one that is only slow is waited for as long as a start may take: a function
    that starts would be asked again and again, and each attempt would start a further process of it.
    """
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_SECONDS)
    deadline = time.monotonic() + (START_SECONDS if while_waiting else _ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        while not select.select([connection.sock], [], [], _LOOK_SECONDS)[0]:
            if while_waiting:
                while_waiting()
            if time.monotonic() > deadline:
                return False
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _other_fields(before: Project | None, after: Project) -> Iterator[str]:
    """The fields of the local stage that two projects set otherwise: the templates were synthesised with the first."""
    if before is not None:
        fields, others = (project.stages["local"].changed for project in (before, after))
        names = sorted(fields.keys() | others.keys())
        yield from (f"stage.local.{name}" for name in names if fields.get(name) != others.get(name))
        servers, later = (
            {one.name: one for one in project.stages["local"].stdio} for project in (before, after)
        )
        every = sorted(servers.keys() | later.keys())
        yield from (f"mcp.{name}" for name in every if servers.get(name) != later.get(name))


def _put_keys(aws: Aws, outputs: Mapping[str, str], keys: Mapping[str, str]) -> None:
    store = aws.client("ssm")
    for name, key in keys.items():
        parameter = outputs[f"{name.capitalize()}KeyName"]
        store.put_parameter(Name=parameter, Value=key, Type="SecureString", Overwrite=True)


def _exports(aws: Aws) -> str:
    from dualtrack_stack.local.aws import REGION  # noqa: PLC0415 - the light part of this module starts fast

    values = {
        "AWS_ENDPOINT_URL": aws.endpoint_url,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,  # which boto3 reads
        **aws.credentials.environment(),
    }
    return "".join(f"export {name}={value}\n" for name, value in values.items())
