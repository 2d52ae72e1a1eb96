"""The processes of functions on a laptop: how many there are of each."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from dualtrack_stack.local.workers import Queues, account_concurrency, bound, processes_of

CALLS = 24


class Runtime:
    """The emulator's pool: a process of its own for each call at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free: list[object] = []
        self.made = 0
        self.taken = threading.Semaphore(0)

    def acquire_worker(self, func_name: str, config: dict[str, Any], code_zip: bytes, qualifier: str) -> Any:
        assert (func_name, code_zip, qualifier) == ("x", b"zip", "3")
        if config.get("broken"):
            raise OSError("no memory")
        with self.lock:
            if self.free:
                return self.free.pop(), "reused"
            self.made += 1
            return object(), "spawn"

    def release_worker(self, worker: object) -> None:
        with self.lock:
            if worker is not None:
                self.free.append(worker)


def config(name: str, **more: Any) -> dict[str, Any]:
    return {"Environment": {"Variables": {"POWERTOOLS_SERVICE_NAME": name}}, **more}


def calls(runtime: Runtime, name: str, most: int) -> int:
    """The processes after so many calls at once; each goes on when as many as may be are there."""
    queues = Queues(runtime, {"embed": 2})
    together = threading.Barrier(most)

    def call(_: int) -> None:
        worker, _how = queues.acquire("x", config(name), b"zip", qualifier="3")
        together.wait(30)
        queues.release(worker)

    with ThreadPoolExecutor(CALLS) as pool:
        list(pool.map(call, range(CALLS)))
    return runtime.made


def test_calls_of_a_bounded_function_wait_for_a_process() -> None:
    assert calls(Runtime(), "embed", 2) == 2


def test_other_functions_have_a_process_for_each_call() -> None:
    assert calls(Runtime(), "turn", CALLS) == CALLS


@pytest.mark.parametrize("how", ["broken down", "not started"])
def test_what_breaks_down_does_not_keep_its_place(how: str) -> None:
    """The emulator gives nothing back for a process that has broken down in a call."""
    queues = Queues(Runtime(), {"embed": 1})
    for _ in range(3):
        if how == "broken down":
            queues.acquire("x", config("embed"), b"zip", qualifier="3")
            queues.release(None)
        else:
            with pytest.raises(OSError, match="no memory"):
                queues.acquire("x", config("embed", broken=True), b"zip", qualifier="3")


def test_embeddings_leave_a_processor_to_the_next_question() -> None:
    assert processes_of()["embed"] >= 1
    assert account_concurrency() >= 16


def test_only_a_projects_tools_are_supervised() -> None:
    """Everything else of the module stays what it was."""
    runtime = SimpleNamespace(acquire_worker=None, release_worker=None)
    bound(runtime)
    assert runtime.subprocess.PIPE == subprocess.PIPE
    command = [sys.executable, "-c", "import os; print(os.getppid())"]
    parents = {}
    for name in ("own", "turn"):
        env = {
            "POWERTOOLS_SERVICE_NAME": name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
            "PATH": "/usr/bin:/bin",
        }
        with runtime.subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
            parents[name] = int(process.stdout.read()) == process.pid
    assert parents == {"own": True, "turn": False}
