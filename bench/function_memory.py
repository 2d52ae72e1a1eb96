"""Peak memory of each function over a fixed set of chats and jobs on the local stack; processor time of cold starts.

    uv run --group test python -m bench.function_memory            # print the table (two minutes)
    uv run --group test python -m bench.function_memory --write    # and write it to measured.json
    uv run --group test python -m bench.function_memory --cold     # the cold starts alone (half a minute)

Measured is the peak resident size of a function's processes (``VmHWM``) and their children, which on the local stack
import exactly what they import on Lambda. The set is the heaviest that the contract allows: twenty results at once, 2
MB of tool text, 4 MB of files, a course of a megabyte, a graph of 100,000 nodes, every kind of search, deletions, an
erased user. `tests/infra/test_memory_sizes.py` compares the sizes with the table.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
from dualtrack.clock import iso
from dualtrack.ids import execution_name
from dualtrack_stack.local.forks import FORKS
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.sample_docs.server import create_app
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.stacks.function_specs import SPECS
from rich.console import Console
from rich.table import Table

from bench.imports import code_of, cpu_seconds
from tests.clients.stack_client import KEYS, PATIENCE, Person, Root, announced, wait_for
from tests.drivers.documents import ROOT
from tests.drivers.plugin_parts import parts
from tests.drivers.worker_world import deployed_environment
from tests.servers.processes import free_port
from tests.servers.tool_server import NAME, serve_tools
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.local.offline_model.server import OfflineModel

FILE: Final = ROOT / "infra" / "dualtrack_stack" / "measured.json"
_BOTO: Final = "\nimport boto3\nfor name in {}: boto3.client(name)\n"
COLD: Final = {
    "api": code_of("api") + _BOTO.format(("dynamodb", "stepfunctions")),
    "turn": code_of("turn")
    + _BOTO.format(("dynamodb", "s3", "ssm"))
    + "from dualtrack.models.providers.anthropic.client import connect\nconnect('http://127.0.0.1:9', 'none').client",
    "stream": code_of("stream").replace("import handler", "import uvicorn.protocols.http.auto, app")
    + _BOTO.format(("dynamodb",)),
    "tool": code_of("tool") + _BOTO.format(("dynamodb", "s3")),
    "own": code_of("own") + _BOTO.format(("dynamodb", "s3", "ssm")),
    "summarise": code_of("summarise")
    + _BOTO.format(("dynamodb", "s3", "ssm"))
    + "from dualtrack.models.providers.anthropic.client import connect\nconnect('http://127.0.0.1:9', 'none').client",
}
"""What runs in the functions of a two-tool chat before their work: imports with bytecode, as layers have it, and
clients."""
_EVERY_SECONDS: Final = 0.05


class Peaks:
    """The highest ``VmHWM`` of each function's processes, in MB, read while they live."""

    def __init__(self, root: Root) -> None:
        self.megabytes: dict[str, float] = {}
        self._root = root
        self._functions = {
            root.stack.outputs[f"{spec.construct_id}Function"]: spec.name for spec in SPECS.values()
        }
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def look(self, name: str, pid: int) -> None:
        """Record one process's peak, with that of its child; skip processes that are gone."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            kilobytes = _peak(pid)
            for thread in Path(f"/proc/{pid}/task").iterdir():
                kilobytes += sum(_peak(int(child)) for child in (thread / "children").read_text().split())
            self.megabytes[name] = max(self.megabytes.get(name, 0.0), kilobytes / 1024)

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            for folder in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    arguments = (folder / "cmdline").read_bytes().decode(errors="replace")
                    if str(self._root.state_dir) not in arguments:
                        continue
                    for function, name in self._functions.items():
                        if function in arguments:
                            self.look(name, int(folder.name))


def _peak(pid: int) -> int:
    """``VmHWM``, in KB."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])


def cold_starts() -> dict[str, float]:
    """Processor seconds of each of `COLD`. The least of several runs, because other work on the machine only adds."""
    least = dict.fromkeys(COLD, math.inf)
    for _ in range(9):
        for name, code in COLD.items():
            least[name] = min(least[name], cpu_seconds(code))
    return {name: round(seconds, 2) for name, seconds in least.items()}


class Work:
    """The fixed set, for one stack."""

    def __init__(self, root: Root, model: OfflineModel, peaks: Peaks) -> None:
        self._root = root
        self._model = model
        self._peaks = peaks
        self._person = Person(root.stack.url, root.stack.token("measured"))
        root.grant(self._person.id)

    def run(self) -> None:
        """Run the whole set."""
        first = self._chat("documents", [("retrieve_documentation", {"query": "How do I set up OAuth?"})])
        conversation = first["conversation_id"]
        self._chat("again", [("retrieve_full_context", {"id": "q1-t1"})] * 20, conversation)
        self._chat("search", [("search_conversation", {"query": "oauth token"})] * 4, conversation)
        self._chat("megabytes", [(f"{NAME}_big", {"megabytes": 2})] * 2, conversation)
        self._chat("read", [("retrieve_full_context", {"id": "q4-t1", "limit": 100_000})] * 20, conversation)
        self._files()
        for number in range(6):
            self._chat(f"long {number}", [(f"{NAME}_echo", {"text": "word " * 5_000})] * 5, conversation)
        self._courses()
        self._graph()
        self._of_plugins()
        self._stream(first["chat_id"])
        self._failure()
        due = {"message": "Hello.", "at": iso(time.time() + 1)}
        schedule = self._person.http.post("/v1/schedules", json=due).json()["schedule_id"]
        wait_for(lambda: self._ran(schedule))
        for name, event in (("Sweep", {}), ("CreditReset", {}), ("Mcp", {"action": "refresh"})):
            self._root.invoke(name, {"source": "schedule", **event})
        texts = json.loads((ROOT / "events" / "embed.json").read_text())
        self._root.invoke("Embed", texts)
        # what a project's packages take comes on top
        self._root.invoke("Own", json.loads((ROOT / "events" / "own.json").read_text()))
        assert self._person.http.delete(f"/v1/conversations/{conversation}").status_code == 204
        assert self._person.http.delete("/v1/me").is_success
        for _ in range(5):
            self._root.invoke("Sweep", {"source": "schedule"})

    def _chat(
        self, name: str, calls: list[tuple[str, dict[str, Any]]], conversation: str = ""
    ) -> dict[str, Any]:
        key = f"marker-{uuid.uuid4().hex[:12]}:"
        asked = [{"type": "tool_use", "name": tool, "input": arguments} for tool, arguments in calls]
        if asked:
            self._model.script.add({"match": key, "content": asked})
        self._model.script.add({"match": key, "text": f"An answer about {name}. " * 100})
        ended = self._person.ask(f"{key} {name} " + "with some detail " * 50, conversation)
        assert ended["status"] == "done", ended
        return ended

    def _ran(self, schedule_id: str) -> bool:
        self._root.invoke("Schedule", {"source": "schedule"})
        return bool(self._person.get(f"/v1/schedules/{schedule_id}")["runs"])

    def _files(self) -> None:
        text = base64.b64encode(os.urandom(1_500_000).hex().encode()).decode()
        body = {
            "message": "Read this.",
            "attachments": [{"media_type": "text/plain", "data": text, "name": "a"}],
        }
        self._person.finish(self._person.http.post("/v1/chats", json=body).json()["chat_id"])

    def _courses(self) -> None:
        lessons = "\n\n".join(
            f"Lesson {n}: Part {n}\n" + " ".join(f"Sentence {n}.{i} says what it says." for i in range(700))
            for n in range(40)
        )
        data = f"Course Title: Heavy\n\n{lessons}\n".encode()
        self._ingest("courses", "heavy.txt", data)
        self._ask_profile("courses", "search_course_content", {"query": "what it says"})

    def _graph(self) -> None:
        nodes = [{"node_id": f"n{n}", "label": f"L{n % 9}", "name": f"Node {n}"} for n in range(100_000)]
        edges = [{"from": f"n{n}", "type": "NEXT", "to": f"n{n // 2}"} for n in range(1, 100_000)]
        self._ingest("graph", "heavy.json", json.dumps({"nodes": nodes, "edges": edges}).encode())
        self._ask_profile("graph", "count_related_by_name", {"name": "Node 1"})

    def _ingest(self, corpus: str, name: str, data: bytes) -> None:
        admin = Person(self._root.stack.url, self._root.stack.token("corpus-admin", admin=True))
        address = f"/v1/admin/corpora/{corpus}"
        body = {"files": [announced(name, data)]}
        (upload,) = admin.http.post(f"{address}/uploads", json=body).json()["uploads"]
        httpx.put(upload["url"], content=data, headers=upload["headers"], trust_env=False).raise_for_status()
        files = [{"upload_id": upload["upload_id"], "name": name}]
        job = admin.http.post(f"{address}/jobs", json={"files": files}).json()
        wait_for(lambda: admin.get(job["url"])["status"] in ("done", "failed"), 400)
        assert admin.get(job["url"])["status"] == "done", admin.get(job["url"])

    def _of_plugins(self) -> None:
        for part in parts("measured"):
            part.load(self._person)

    def _ask_profile(self, profile: str, tool: str, arguments: dict[str, Any]) -> None:
        key = f"marker-{uuid.uuid4().hex[:12]}:"
        call = {"type": "tool_use", "name": tool, "input": arguments}
        self._model.script.add({"match": key, "content": [call] * 4})
        self._model.script.add({"match": key, "text": "So it says."})
        body = {"message": f"{key} search", "profile": profile}
        self._person.finish(self._person.http.post("/v1/chats", json=body).json()["chat_id"])

    def _failure(self) -> None:
        """A chat that its workflow gives up, which runs `abort`; then `abort` once more."""
        key = f"marker-{uuid.uuid4().hex[:12]}:"
        self._model.script.add({"match": key, "status": 400})
        chat_id = self._person.start(f"{key} fail")["chat_id"]
        self._person.events(chat_id)
        chat = self._root.chat_of(self._person, chat_id)
        event = {"user": chat.user, "chat_id": chat_id, "conversation_id": chat.conversation_id}
        failed = {"execution": execution_name(chat_id), "error": {"Error": "States.Timeout", "Cause": ""}}
        self._root.invoke("Abort", {**event, **failed})

    def _stream(self, chat_id: str) -> None:
        """The function `stream` in its own process: on the local stack the front port serves it."""
        environment = deployed_environment(self._root, "stream")
        stack, port = self._root.stack, free_port()
        environment["JWKS_URL"] = f"{stack.endpoint_url}/{stack.outputs['UserPoolId']}/.well-known/jwks.json"
        environment["PYTHONPATH"] = f"{ROOT / 'functions/stream'}:{ROOT / 'layers/core/python'}"
        command = [sys.executable, "-m", "uvicorn", "--factory", "app:app", "--port", str(port)]
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
            try:
                headers = dict(self._person.http.headers)
                address = f"http://127.0.0.1:{port}/v1/chats/{chat_id}/events"
                deadline = time.monotonic() + PATIENCE
                while time.monotonic() < deadline:
                    with contextlib.suppress(httpx.ConnectError):
                        answer = httpx.get(address, headers=headers, trust_env=False, timeout=PATIENCE)
                        assert answer.status_code == 200, answer.text
                        break
                    time.sleep(0.1)
                self._peaks.look("stream", process.pid)
            finally:
                process.kill()


@contextlib.contextmanager
def _stack(folder: Path) -> Iterator[tuple[Root, OfflineModel]]:
    with (
        serve_offline_model() as model,
        serve_tools() as tools,
        serve_voyage(FakeVoyage(api_key=KEYS["VOYAGE_API_KEY"])) as voyage,
        serve_in_thread(create_app()) as documents,
    ):
        environment = {
            **KEYS,
            "ANTHROPIC_BASE_URL": model.url,
            "CONTEXT7_BASE_URL": documents,
            "VOYAGE_BASE_URL": voyage.url,
            "MCP_SERVERS": json.dumps([{"name": NAME, "url": tools.url, "price_class": "other"}]),
        }
        with LocalStack(folder, environment=environment) as stack:
            root = Root(stack, folder)
            root.invoke("Mcp", {"action": "refresh"})
            yield root, model


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    figures = {"cold_cpu_seconds": cold_starts()}
    Console().print(f"Processor seconds of a cold start: {figures['cold_cpu_seconds']}")
    if not arguments.cold:
        figures = {"peak_megabytes": peaks_of_all(), **figures}
    if arguments.write:
        known = json.loads(FILE.read_text(encoding="utf-8"))
        FILE.write_text(json.dumps({**known, **figures}, indent=2) + "\n", encoding="utf-8")


def peaks_of_all() -> dict[str, float]:
    """Run the set, print the table, and return the peak of each function."""
    os.environ[FORKS] = "off"  # a copy has in memory what other functions import
    with (
        tempfile.TemporaryDirectory() as folder,
        _stack(Path(folder)) as (root, model),
        Peaks(root) as peaks,
    ):
        Work(root, model, peaks).run()
    measured: dict[str, float] = {
        name: math.ceil(peaks.megabytes[name]) for name in SPECS if name in peaks.megabytes
    }
    table = Table(title="Peak resident memory, MB")
    for heading in ("function", "peak", "size", "share"):
        table.add_column(heading, justify="left" if heading == "function" else "right")
    for name, peak in measured.items():
        table.add_row(name, str(peak), str(SPECS[name].memory), f"{peak / SPECS[name].memory:.0%}")
    Console().print(table)
    if missing := [name for name in SPECS if name not in measured]:
        sys.exit(f"Not seen: {', '.join(missing)}")
    return measured


if __name__ == "__main__":
    main()
