"""A process that has loaded what functions import, and becomes theirs: ``python fork_server.py SOCKET LAYER …``.

Loading the SDKs takes each process of a function one to three seconds of a processor, and a stack has dozens of them.
A copy of this one has them at once. It serves `dualtrack_stack.local.forks` on the socket whose descriptor is given: a
request is a command with its folder and environment, and three descriptors; the answer is the copy's process id, or 0
where it must not be copied. Standard library alone, since a function's process sees none of our modules by way of it.
"""

from __future__ import annotations

import array
import ast
import contextlib
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

REQUEST_BYTES: Final = 1 << 20
_DESCRIPTORS: Final = 3


def main() -> None:
    """Serve until the socket is closed; a copy runs its command to the end."""
    given, path = socket.socket(fileno=int(sys.argv[1])), [*sys.path]
    sys.path[:0] = [str(Path(layer, "python")) for layer in reversed(sys.argv[2:])]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the emulator
    job = _serve(given)
    given.close()
    if job is not None:
        sys.path[:] = path
        signal.signal(signal.SIGINT, interrupted)
        _become(*job)


def _serve(given: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """A copy returns what it is to become, this process None at the end."""
    loaded = set[bytes]()
    while True:
        text, descriptors = _received(given)
        if not text:
            return None
        job = json.loads(text)
        folder = Path(job["cwd"])
        for file in sorted(folder.glob("*.py")):
            source = file.read_bytes()
            if source not in loaded:
                loaded.add(source)
                _load(source, {path.stem for path in folder.iterdir()})
                gc.collect()
                gc.freeze()  # what is never looked at stays shared
        pid = 0
        # a copy has one thread: locks that others hold would stay locked in it
        if len(list(Path("/proc/self/task").iterdir())) == 1:
            pid = os.fork()
            if pid == 0:
                return job, descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        given.send(str(pid).encode())


def _received(given: socket.socket) -> tuple[bytes, list[int]]:
    room = socket.CMSG_SPACE(_DESCRIPTORS * array.array("i").itemsize)
    text, passed, *_ = given.recvmsg(REQUEST_BYTES, room)
    found = array.array("i")
    for *_, content in passed:
        found.frombytes(content)
    return text, list(found)


def imports_of(source: bytes) -> list[str]:
    """The modules that a file imports when it is loaded, in order, without those for type checkers alone."""
    found: list[str] = []

    def walk(statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    pass
                case ast.Import(names=names):
                    found.extend(name.name for name in names)
                case ast.ImportFrom(module=str(module), level=0):
                    found.append(module)
                case ast.With(body=body) | ast.Try(body=body) | ast.If(body=body):
                    walk(body)

    walk(ast.parse(source).body)
    return found


def _load(source: bytes, own: set[str]) -> None:
    """Import what is no module of the function's ``own``. What cannot be read or imported, its process will say."""
    modules: list[str] = []
    with contextlib.suppress(SyntaxError, ValueError):
        modules = imports_of(source)
    for module in modules:
        if module.partition(".")[0] not in own:
            with contextlib.suppress(Exception):
                importlib.import_module(module)


def _become(job: dict[str, Any], descriptors: list[int]) -> None:
    """Go on as the command would have begun."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = map(_anew, (sys.stdin, sys.stdout, sys.stderr))
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    script = job["command"][1]
    sys.argv[:] = job["command"][1:]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")


def _anew(stream: Any) -> Any:
    """A standard stream, of whose descriptor another file has taken the place."""
    binary = open(stream.fileno(), stream.buffer.mode, closefd=False)  # noqa: SIM115 - as long as the process
    is_error = stream.fileno() == 2
    return io.TextIOWrapper(binary, stream.encoding, stream.errors, line_buffering=is_error)


if __name__ == "__main__":
    main()
