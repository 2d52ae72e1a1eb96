"""Time of a chat's workflow compared with a bare one of the same shape, and chats per second.

    uv run --group test python -m bench.workflow_time [--rounds 10] [--compare]

Both workflows run on the same emulator in the same run, alternating. The bare one is
``infra/dualtrack_stack/chat.asl.json`` over a function that immediately returns what the steps return. The model
answers at once, so the difference is our own code and its requests to the stores, which the emulator answers: its own
CPU seconds are in the table too, since on two cores what it computes is waited for. ``--compare``: without the second
table.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import tempfile
import time
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import EMULATOR, LocalStack
from dualtrack_stack.machines import CHAT, definition_of
from rich.console import Console
from rich.table import Table

from tests.clients.stack_client import Person, Root, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[1]
BURST: Final = 24
BARE: Final = """
def handler(event, context):
    tools = int(event["chat_id"].rsplit("-", 1)[1])
    calls = [{"id": f"q1-t{n + 1}", "fn": "tool"} for n in range(tools)]
    if "turn" not in event or "call" in event:
        return {}
    asks = bool(calls) and event["turn"] == 0
    return {"turn": event["turn"] + 1, "next": "tools" if asks else "answered", "calls": calls if asks else []}
"""
ASK: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
TOOLS: Final = (0, 2, 10)


@dataclass(frozen=True, slots=True)
class Bare:
    """The bare workflow."""

    root: Root
    machine: str

    def run(self, tools: int) -> float:
        """Seconds of one execution."""
        client = self.root.client("stepfunctions")
        start = {"user": "u", "chat_id": f"{uuid.uuid4().hex}-{tools}", "conversation_id": "c", "turn": 0}
        arn = client.start_execution(
            stateMachineArn=self.machine, name=start["chat_id"], input=json.dumps(start)
        )
        return seconds_of(client, arn["executionArn"])


def make_bare(root: Root) -> Bare:
    """Deploy the bare function and the machine over it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("bare.py", BARE)
    functions = root.client("lambda")
    role = functions.get_function(FunctionName=root.stack.outputs["TurnFunction"])["Configuration"]["Role"]
    arn = functions.create_function(
        FunctionName="bare",
        Runtime="python3.13",
        Role=role,
        Handler="bare.handler",
        Timeout=60,
        Code={"ZipFile": packed.getvalue()},
    )["FunctionArn"]
    definition = definition_of(CHAT)
    for name in ("Turn", "Tool", "Search", "Mcp", "Summarise", "Abort"):
        definition = definition.replace(f"${{{name}}}", arn)
    client = root.client("stepfunctions")
    described = client.describe_state_machine(stateMachineArn=root.machine)
    return Bare(root, _create(root, client, definition, described["roleArn"], arn))


def _create(root: Root, client: Any, definition: str, role: str, function: str) -> str:
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": function}],
    }
    root.client("iam").put_role_policy(
        RoleName=role.rsplit("/", 1)[-1], PolicyName="bare", PolicyDocument=json.dumps(policy)
    )
    return str(
        client.create_state_machine(name="bare", definition=definition, roleArn=role)["stateMachineArn"]
    )


def seconds_of(client: Any, arn: str) -> float:
    """How long an execution took, once it has succeeded."""
    wait_for(lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING")
    done = client.describe_execution(executionArn=arn)
    assert done["status"] == "SUCCEEDED", done
    return float((done["stopDate"] - done["startDate"]).total_seconds())


def real(root: Root, person: Person, model: Any, tools: int) -> float:
    """Seconds of one chat's execution."""
    if tools:
        model.script.add({"match": f"{tools} tools: go", "content": [ASK] * tools})
    chat_id = person.start(f"{tools} tools: go" if tools else "plain: go")["chat_id"]
    return seconds_of(root.client("stepfunctions"), root.execution_arn(chat_id))


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of a workflow, and the emulator's CPU seconds meanwhile."""

    seconds: float
    emulated: float


def emulator() -> int:
    """The process of the emulator, a child of this one."""
    children = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    named = (pid for pid in children if EMULATOR.encode() in Path("/proc", pid, "cmdline").read_bytes())
    return int(next(named))


def cpu_of(pid: int) -> float:
    """CPU seconds of a process without its children."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(execute: Callable[[], float], pid: int) -> Run:
    """Run it."""
    before = cpu_of(pid)
    seconds = execute()
    return Run(seconds, cpu_of(pid) - before)


def compare(root: Root, person: Person, model: Any, rounds: int) -> Table:
    """The table of both workflows, interleaved."""
    bare, pid = make_bare(root), emulator()
    table = Table(title=f"Seconds of a workflow, median of {rounds} interleaved runs")
    for heading in (
        "tools",
        "bare",
        "dualtrack",
        "ratio",
        "emulator's CPU: bare",
        "dualtrack",
        "ratio without it",
    ):
        table.add_column(heading, justify="right")
    for tools in TOOLS:
        ways: dict[str, Callable[[], float]] = {
            "bare": partial(bare.run, tools),
            "real": partial(real, root, person, model, tools),
        }
        runs: dict[str, list[Run]] = {"bare": [], "real": []}
        for number in range(rounds + 2):
            for name, execute in ways.items():
                run = measured(execute, pid)
                if number >= 2:
                    runs[name].append(run)
        base, ours = (statistics.median(run.seconds for run in runs[name]) for name in runs)
        emulated = [statistics.mean(run.emulated for run in runs[name]) for name in runs]
        rest = (ours - emulated[1]) / (base - emulated[0])
        cells = (f"{base:.3f}", f"{ours:.3f}", f"{ours / base:.2f}", *(f"{cpu:.3f}" for cpu in emulated))
        table.add_row(str(tools), *cells, f"{rest:.2f}")
    return table


def throughput(root: Root, people: list[Person]) -> Table:
    """Chats started together and answered, per second."""
    table = Table(title="Chats per second with a model that answers at once")
    for heading in ("chats at once", "functions", "seconds", "chats/s"):
        table.add_column(heading, justify="right")
    for size, state in ((1, "warm"), (4, "cold"), (BURST, "cold"), (BURST, "warm")):
        started = time.monotonic()
        with ThreadPoolExecutor(size) as pool:
            list(pool.map(lambda person: person.finish(person.start("plain: go")["chat_id"]), people[:size]))
        seconds = time.monotonic() - started
        table.add_row(str(size), state, f"{seconds:.1f}", f"{size / seconds:.1f}")
    return table


def main() -> None:
    """Start a stack and print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--compare", action="store_true")
    chosen = parser.parse_args()
    console = Console(width=120)
    with (
        serve_offline_model() as model,
        serve_sample_docs() as documents,
        tempfile.TemporaryDirectory() as folder,
    ):
        model.script.add({"match": "plain", "text": "Yes.", "always": True})
        environment = {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": model.url,
            "CONTEXT7_BASE_URL": documents,
        }
        with LocalStack(folder, environment=environment) as stack:
            root = Root(stack, Path(folder))
            people = [Person(stack.url, stack.token(f"user-{number}")) for number in range(BURST)]
            for person in people:
                root.grant(person.id)
            console.print(f"The stack was ready after {stack.seconds_to_ready:.1f} s.")
            console.print(compare(root, people[0], model, chosen.rounds))
            if not chosen.compare:
                console.print(throughput(root, people))


if __name__ == "__main__":
    main()
