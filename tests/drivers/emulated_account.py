"""An empty AWS account on this machine, for the commands that deploy: the emulator, templates that it accepts, access.

The emulator runs as it is, not behind `dualtrack_stack.local.emulator`, which hands functions the sessions of checked
roles. What it cannot do is removed from the templates here, listed in `NOT_EMULATED`. IAM policies are not checked,
because the CDK's own bucket refuses plain HTTP, which is all that the emulator speaks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.cli.aws.cdk import PACKAGE
from dualtrack_stack.local.assets import zip_folder
from dualtrack_stack.local.aws import Aws
from dualtrack_stack.local.credentials import Credentials
from dualtrack_stack.local.front_config import FrontConfig
from dualtrack_stack.local.processes import Children
from dualtrack_stack.local.stack import HOST, answers
from dualtrack_stack.local.synth import cache, content_key, synthesise_into
from dualtrack_stack.node import node
from dualtrack_stack.roots import PROJECT_FILE

from tests.drivers.documents import ROOT
from tests.servers.vector_buckets import VectorBuckets, vector_buckets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOT_EMULATED: Final = ("AWS::Logs::QueryDefinition",)
"""Resource types that the emulator does not know; nothing else of a stage depends on them."""
REGION: Final = "us-east-1"

STAGE: Final = {
    "keep_data": False,
    "built_layers": False,  # layers for arm64 do not run here: functions find the machine's packages
    "log_retention_days": 1,
    "encrypted_transport": True,
    "request_rate": 1000,
    "request_burst": 1000,
    "token_hours": 1,
    "ledger_retention_days": 30,
    "alarms": False,  # the emulator does not support metric math
    "log_level": "INFO",
    "page": False,
    "callback_urls": ["http://localhost:8000/"],
    "empties_buckets": False,  # the CDK's function for that needs Node, which the emulator does not run
    "password_sign_in": True,
    "mfa_required": False,
    "release": "in_place",
}


def settings_file(folder: Path, settings: Mapping[str, str], stage: str = "staging", **more: Any) -> None:
    """The file of a project with a stage that the emulator can run; ``more``: instead of those of `STAGE`."""
    lines = [f"[stage.{stage}]", *(f"{name} = {json.dumps(value)}" for name, value in (STAGE | more).items())]
    lines += [
        f"[stage.{stage}.settings]",
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROJECT_FILE).write_text("\n".join(lines) + "\n")


def assembly(folder: Path, stage: str = "staging") -> Path:
    """The templates of the settings in a folder, as the CDK deploys them; cached by their inputs."""
    text = (folder / PROJECT_FILE).read_text()
    code = _hash_of("functions", "layers/core")
    target = cache() / f"emulated-{content_key(stage, {'file': text, 'code': code})}"
    if not target.is_dir():
        cache().mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".synth-", dir=cache()))
        synthesise_into(work, stage, {"settings": str(folder)})
        _leave_out(work)
        with contextlib.suppress(OSError):  # another worker was faster
            work.rename(target)
        shutil.rmtree(work, ignore_errors=True)
    return target


def _hash_of(*folders: str) -> str:
    return "".join(hashlib.sha256(zip_folder(ROOT / folder)).hexdigest() for folder in folders)


def _leave_out(folder: Path) -> None:
    for path in folder.glob("*.template.json"):
        template = json.loads(path.read_text())
        kept = {
            name: resource
            for name, resource in template["Resources"].items()
            if resource["Type"] not in NOT_EMULATED
        }
        path.write_text(json.dumps(template | {"Resources": kept}))


def cdk_command() -> str | None:
    """The CDK's command line as `.ci/install_cdk_cli.sh` installs it; None where it is not."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dualtrack" / "npm-cdk"
    stamp, script = cache / "packages", cache / "node_modules" / "aws-cdk" / "bin" / "cdk"
    is_there = stamp.is_file() and stamp.read_text().strip() == PACKAGE and script.is_file()
    return f"{node()} {script}" if is_there else None


@dataclass
class EmulatedAccount:
    """A running emulator and its root's credentials."""

    aws: Aws
    children: Children
    root: Path
    vectors: VectorBuckets
    """The emulator has none."""

    def environment(self) -> dict[str, str]:
        """Environment variables for a command that uses the account."""
        return {
            "AWS_ENDPOINT_URL": self.aws.endpoint_url,
            "AWS_ENDPOINT_URL_S3VECTORS": self.vectors.url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            **self.aws.credentials.environment(),
        }

    def stacks(self) -> dict[str, str]:
        """Name → status."""
        stacks = self.aws.client("cloudformation").describe_stacks()["Stacks"]
        return {stack["StackName"]: stack["StackStatus"] for stack in stacks}

    def outputs(self) -> dict[str, str]:
        """The outputs of all stacks together."""
        stacks = self.aws.client("cloudformation").describe_stacks()["Stacks"]
        return {
            output["OutputKey"]: output["OutputValue"]
            for stack in stacks
            for output in stack.get("Outputs", [])
        }

    def serve(self) -> str:
        """Start the local stack's front before the deployed stage (it streams events, which the emulator does not).
        Returns its address.
        """
        listener = socket.create_server((HOST, 0))
        outputs = self.outputs()
        stream: Any = self.aws.client("lambda").get_function_configuration(
            FunctionName=outputs["StreamFunction"]
        )
        keys = f"{self.aws.endpoint_url}/{outputs['UserPoolId']}/.well-known/jwks.json"
        config = FrontConfig(
            endpoint_url=self.aws.endpoint_url,
            access_key=self.aws.credentials.access_key,
            secret_key=self.aws.credentials.secret_key,
            rest_api_id=outputs["RestApiId"],
            gateway_stage="live",
            user_pool_id=outputs["UserPoolId"],
            client_id=outputs["UserPoolClientId"],
            user="tester",
            stream_role_arn=outputs["StreamRoleArn"],
            stream_environment={**stream["Environment"]["Variables"], "JWKS_URL": keys},
            status={"mode": "offline"},
        )
        descriptor = listener.fileno()
        front = self.children.start(
            "front",
            "dualtrack_stack.local.front",
            str(descriptor),
            environment=_clean(self.root),
            keep_open=(descriptor,),
        )
        front.send(json.dumps(dataclasses.asdict(config)).encode())
        port = listener.getsockname()[1]
        listener.close()
        _await(port, "/openapi.json")
        return f"http://{HOST}:{port}"


@contextlib.contextmanager
def emulated_account(root: Path) -> Iterator[EmulatedAccount]:
    """An empty account."""
    credentials, children = Credentials.random(), Children(root / "logs")
    with socket.create_server((HOST, 0)) as probe:
        port = probe.getsockname()[1]
    (root / "tmp").mkdir(parents=True, exist_ok=True)
    children.start(
        "emulator",
        "ministack",
        environment={
            **_clean(root),
            "AUTH": "false",
            "BIND_HOST": HOST,
            "GATEWAY_PORT": str(port),
            "PERSIST_STATE": "0",
            "STATE_DIR": str(root / "aws"),
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "DOCKER_HOST": f"unix://{root}/no-docker.sock",
            **credentials.environment(),
        },
    )
    try:
        _await(port, "/_ministack/health")
        with vector_buckets() as vectors:
            yield EmulatedAccount(Aws(f"http://{HOST}:{port}", credentials), children, root, vectors)
    finally:
        children.stop()


def _await(port: int, path: str) -> None:
    deadline = time.monotonic() + 60
    while not answers(port, path):
        assert time.monotonic() < deadline, f"{path} is not answered"
        time.sleep(0.05)


def _clean(root: Path) -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "PYTHONPATH", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"TMPDIR": str(root / "tmp")}
