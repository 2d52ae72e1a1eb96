"""Processes of functions that begin as copies of one that has loaded what they import."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.local.fork_server import imports_of
from dualtrack_stack.local.forks import LAYERS, THREADED, Fork, ForkServers, can_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., Fork | None]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are not copied here")

SCRIPT = """
import json, os, sys
sys.path.insert(0, os.getcwd())
sys.path.insert(0, os.path.join(os.environ["_LAMBDA_LAYERS_DIRS"], "python"))
import handler
print("to stderr", file=sys.stderr)
for line in sys.stdin:
    print(json.dumps([line.strip(), handler.loaded_by(), os.getpid(), os.environ["OWN"], os.getcwd(), sys.argv]))
    sys.stdout.flush()
"""
HANDLER = """
from __future__ import annotations
from typing import TYPE_CHECKING
import shared
import own
if TYPE_CHECKING:
    import nowhere

def loaded_by():
    return [shared.PID, own.PID]
"""
PID = "import os\nPID = os.getpid()\n"


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """A layer with the module `shared`."""
    folder = tmp_path / "layer"
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "shared.py").write_text(PID)
    return folder


@pytest.fixture
def servers() -> Iterator[ForkServers]:
    servers = ForkServers()
    yield servers
    servers.close()


@pytest.fixture
def start(tmp_path: Path, layer: Path, servers: ForkServers) -> Iterator[Start]:
    """Starts a process as the emulator does, each in a folder of its own."""
    begun: list[Fork] = []
    numbers = itertools.count()

    def started(handler: str = HANDLER, **variables: str) -> Fork | None:
        folder = tmp_path / f"process-{next(numbers)}"
        (folder / "code").mkdir(parents=True)
        (folder / "worker.py").write_text(SCRIPT)
        (folder / "code" / "handler.py").write_text(handler)
        (folder / "code" / "own.py").write_text(PID)
        fork = servers.popen(
            [sys.executable, str(folder / "worker.py")],
            cwd=str(folder / "code"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "OWN": folder.name, LAYERS: str(layer), **variables},
        )
        if fork:
            begun.append(fork)
        return fork

    yield started
    for fork in begun:
        fork.kill()
        fork.wait()
        for pipe in (fork.stdin, fork.stdout, fork.stderr):
            pipe.close()


def asked(fork: Fork | None) -> Any:
    assert fork is not None
    fork.stdin.write("question\n")
    return json.loads(fork.stdout.readline())


def test_each_is_a_process_of_its_own_that_has_loaded_nothing_again(start: Start, tmp_path: Path) -> None:
    first, second = start(), start()
    assert first is not None
    assert second is not None
    answers = [asked(first), asked(second)]
    for number, (fork, answer) in enumerate(zip((first, second), answers, strict=True)):
        text, (_, own), pid, variable, folder, argv = answer
        place = tmp_path / f"process-{number}"
        assert [text, own, pid, variable] == ["question", fork.pid, fork.pid, place.name]
        assert [folder, argv] == [str(place / "code"), [str(place / "worker.py")]]
        assert fork.stderr.readline() == "to stderr\n"
    loaded = {answer[1][0] for answer in answers}
    assert len(loaded) == 1
    assert not loaded & {first.pid, second.pid}


def test_it_ends_with_its_input(start: Start) -> None:
    fork = start()
    assert fork is not None
    asked(fork)
    assert fork.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        fork.wait(0.01)
    fork.stdin.close()
    assert fork.wait(30) == fork.poll() == -1
    fork.terminate()  # nothing is sent to whoever has its number then


@pytest.mark.parametrize("end", [Fork.terminate, Fork.kill])
def test_it_can_be_ended(start: Start, end: Callable[[Fork], None]) -> None:
    fork = start()
    assert fork is not None
    asked(fork)
    end(fork)
    fork.wait(30)


def test_what_starts_threads_as_it_is_loaded_is_not_copied(start: Start, layer: Path) -> None:
    threads = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (layer / "python" / "threads.py").write_text(threads)
    assert start() is not None
    assert start(f"import threads\n{HANDLER}", POWERTOOLS_SERVICE_NAME="sums") is None
    asked(start())  # by another server
    assert start(POWERTOOLS_SERVICE_NAME="sums") is None, "it is not tried again"


def test_a_function_that_is_no_python_ends_nobody_else_s_server(start: Start, servers: ForkServers) -> None:
    asked(start())
    (server,) = servers._servers.values()
    assert start("def (:\n") is not None
    asked(start())
    assert servers._servers == {next(iter(servers._servers)): server}


@pytest.mark.parametrize("name", sorted(THREADED))
def test_what_is_known_to_start_threads_is_not_tried(start: Start, name: str) -> None:
    assert start(POWERTOOLS_SERVICE_NAME=name) is None


def test_another_server_takes_the_place_of_one_that_was_killed(start: Start, servers: ForkServers) -> None:
    asked(start())
    (server,) = servers._servers.values()
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    assert start() is None
    asked(start())


def test_a_server_ends_with_its_socket(start: Start, servers: ForkServers) -> None:
    asked(start())
    (server,) = servers._servers.values()
    server.socket.close()
    assert server.process.wait(30) == 0


@pytest.mark.parametrize(
    ("command", "variables", "can"),
    [
        ([sys.executable, "worker.py"], {}, True),
        (["node", "worker.js"], {}, False),
        ([sys.executable, "-m", "supervised"], {}, False),
        ([sys.executable, "worker.py"], {"PYTHONHASHSEED": "7"}, False),
        ([sys.executable, "worker.py"], {"DUALTRACK_FORKS": "off"}, False),
    ],
)
def test_what_can_be_copied(command: list[str], variables: dict[str, str], can: bool) -> None:
    assert can_fork(command, {**os.environ, LAYERS: "layer", **variables}) is can


def test_imports_of_a_handler_without_those_of_a_type_checker() -> None:
    source = b"""
from __future__ import annotations
with quick():
    import a.b, c
    from d.e import f
try:
    import g
except ImportError:
    pass
if TYPE_CHECKING:
    import h
def later():
    import i
from . import j
"""
    assert imports_of(source) == ["__future__", "a.b", "c", "d.e", "g"]
