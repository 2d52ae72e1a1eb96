"""The CDK's command line: one pinned version, on the Node of the Python environment."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.settings import of_commands

from dualtrack_stack.cli.aws.account import AwsRefusal
from dualtrack_stack.roots import own_python, project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PACKAGE: Final = "aws-cdk@2.1148.1"
_NOISE: Final = (
    "WARNING",
    "Acknowledge",
    "allowTestInvoke",
    "program.js",
    "NodeVersionSupport",
    "AWS SDK for",
)
_TAIL: Final = 25


class Cdk:
    """Runs the CDK for one region. ``app`` is the source of the templates: a command, or a folder of them.
    ``show`` is called with each line of progress; all output also goes to ``log``.
    """

    def __init__(self, region: str, app: str, log: Path, show: Callable[[str], None]) -> None:
        self._region = region
        self._app = app
        self._log = log
        self._show = show

    def bootstrap(self, account: str) -> None:
        """Prepare the region, or bring an older bootstrap up to date."""
        # outside the checkout, whose cdk.json would synthesise the app needlessly
        with tempfile.TemporaryDirectory(prefix="dualtrack-cdk-") as folder:
            self._run(["bootstrap", f"aws://{account}/{self._region}"], {}, Path(folder))

    def deploy(self, stacks: Sequence[str], context: Mapping[str, str], settings: Mapping[str, str]) -> None:
        """Deploy stacks by their names in the app, with their dependencies; ``--all`` for all of them.

        ``settings`` is added to the environment of the app (`dualtrack_stack.settings`).
        """
        context_arguments = [part for name, value in context.items() for part in ("-c", f"{name}={value}")]
        with tempfile.TemporaryDirectory(prefix="dualtrack-cdk-") as folder:
            # a separate folder: the CDK locks its output, and a killed CDK leaves the lock behind
            output = [] if Path(self._app).is_dir() else ["--output", folder]
            app = ["--app", self._app, *output]
            options = ["--require-approval", "never", "--progress", "events", "--no-notices"]
            self._run(["deploy", *stacks, *app, *context_arguments, *options], settings, project_root())

    def _run(self, arguments: Sequence[str], settings: Mapping[str, str], folder: Path) -> None:
        command = [*_command(), *arguments]
        environment = {**os.environ, **settings, **self._environment()}
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a", encoding="utf-8") as log, _running(command, environment, folder) as process:
            assert process.stdout is not None
            tail: list[str] = []
            for line in process.stdout:
                log.write(line)
                tail = [*tail[1 - _TAIL :], line]
                if progress := _worth_saying(line):
                    self._show(progress)
        if process.returncode:
            end = "".join(line for line in tail if not any(word in line for word in _NOISE))
            raise AwsRefusal(
                f"The CDK failed ({arguments[0]}); its whole output is in {self._log}.\n{end.strip()}"
            )

    def _environment(self) -> dict[str, str]:
        from dualtrack_stack.node import node  # noqa: PLC0415 - an installed wheel has none

        here = f"{Path(node()).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        # AWS_REGION wins over a profile's in every SDK
        regions = {"AWS_REGION": self._region, "AWS_DEFAULT_REGION": self._region}
        return {
            "PATH": here,
            "JSII_NODE": node(),
            "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
            **regions,
        }


def own_app() -> str:
    """The command with which the CDK runs the app."""
    return shlex.join(own_python("dualtrack_stack.app"))


def _command() -> list[str]:
    if command := of_commands().dualtrack_cdk:
        return shlex.split(command)
    from dualtrack_stack.node import node  # noqa: PLC0415

    npx = Path(node()).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js"
    return [node(), str(npx), "--yes", PACKAGE]


@contextlib.contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> Iterator[subprocess.Popen[str]]:
    """Run the process in its own group; it ends with the block and with this process, even if that is killed."""
    process = subprocess.Popen(
        own_python("dualtrack_stack.local.child", "dualtrack_stack.cli.aws.other_program", *command),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
        process.wait()
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def _worth_saying(line: str) -> str:
    """``dualtrack-staging-chat 12/96 AWS::Lambda::Function Turn`` of a line of progress, and ends of stacks."""
    parts = [part.strip() for part in line.split("|")]
    if len(parts) == 6 and parts[3].endswith(("_COMPLETE", "_FAILED")):
        status = "" if parts[3].endswith("_COMPLETE") else f" {parts[3]}"
        return f"{parts[0]} {parts[1].replace(' ', '')} {parts[4]} {parts[5].split(' (')[0]}{status}"
    return line.strip() if line.lstrip().startswith(("✅", "❌", "✨")) else ""
