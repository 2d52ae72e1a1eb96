"""What a query can do past the guard: with each layer of the sandbox alone, with all of them, and with none.

The engine's statements run in the real child. What its code might do once a query has taken it over is Python in the
engine's place, in a thread that is older than the filter: the same system calls. Root passes some limits, so the child
becomes another user first if root runs the tests.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import socket
import struct
import tempfile
import threading
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack.tools.graph import child, ladybug, sandbox
from dualtrack.tools.graph.engine import GraphError
from dualtrack.tools.graph.ladybug import Ladybug

from tests.drivers.graph_database import ASSETS, make_database

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LAYERS: Final = ("limits", "landlock", "seccomp")
ALL: Final = frozenset(LAYERS)

ATTACKS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "LOAD FROM": ("LOAD FROM 'READABLE' (file_format='csv', header=false) RETURN *", ALL),
    "COPY TO": ("COPY (MATCH (a:Asset) RETURN a.name) TO 'FOLDER/made.csv'", ALL),
    "INSTALL": ("INSTALL httpfs FROM 'http://127.0.0.1:PORT/'", ALL),
    "read a file": ("#\nopen('READABLE').read()", ALL),
    "read its environment": ("#\nopen('/proc/self/environ', 'rb').read()", ALL),
    "read another process": ("#\nopen(f'/proc/{other}/environ', 'rb').read()", ALL),
    "write a file": ("#\nopen('FOLDER/made', 'w')", ALL),
    "open a file in place of another": ("#\nos.close(0); open('READABLE').read()", ALL - {"limits"}),
    "delete a file": ("#\nos.unlink('READABLE')", ALL - {"limits"}),
    "make a folder": ("#\nos.mkdir('FOLDER/made')", ALL - {"limits"}),
    "make a socket": ("#\nsocket.socket()", ALL - {"landlock"}),
    "connect": ("#\nsocket.create_connection(('127.0.0.1', PORT))", ALL),
    "connect in place of a file": (
        "#\nos.close(0); socket.create_connection(('127.0.0.1', PORT))",
        ALL - {"limits"},
    ),
    "send a datagram": (
        "#\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
        ALL - {"landlock"},
    ),
    "run a program": ("#\nos.execv('/bin/sh', ['sh', '-c', 'cat READABLE'])", ALL),
    "start a process": ("#\nos.fork() or os._exit(0)", ALL - {"landlock"}),
    "start a thread": ("#\n_thread.start_new_thread(int, ())", ALL - {"landlock"}),
    "signal another process": ("#\nos.kill(other, 0)", ALL - {"limits"}),
    "attach to another process": ("#\nchecked(libc.ptrace(0x4206, other, 0, 0))", ALL - {"limits"}),
}
"""Statements, and code (after ``#``); and the layers of which each alone refuses them."""

INSIDE: Final = """
import _thread, ctypes, encodings.idna, os, queue, signal, socket, sys
sys.path.insert(0, {core!r})
from dualtrack.tools.graph import child, sandbox

def refused(*_):
    raise OSError(1, "Operation not permitted")
for layer in {off!r}:
    setattr(sandbox, layer, refused)
child.beside = lambda name: sandbox

os.environ["HOME"] = {home!r}  # without one the engine installs nothing
libc = ctypes.CDLL(None, use_errno=True)
def become_another_user():
    if os.getuid() == 0:
        os.setresuid(65534, 65534, 65534)
        libc.prctl(4, 1, 0, 0, 0)  # dumpable, as a process that never changed its user
def checked(result):
    if result:
        raise OSError(ctypes.get_errno(), "")

end, held = os.pipe()
lives = os.open({home!r} + "/other", os.O_WRONLY)
other = os.fork()
if other == 0:
    become_another_user()
    os.close(held)
    os.read(end, 1)  # until the child has ended: the kernel's own signal of that would be refused by Landlock
    os._exit(0)
os.close(end)
os.close(lives)

given, told = queue.SimpleQueue(), queue.SimpleQueue()
def obey():
    while True:
        try:
            exec(given.get())
            told.put(None)
        except BaseException as error:
            told.put(error)

connected, answer = child.connected, child.answer
def connected_beside_a_thread(*arguments):
    connection = connected(*arguments)
    _thread.start_new_thread(obey, ())
    become_another_user()
    return connection
def answer_or_obey(connection, request):
    if not request["query"].startswith("#"):
        return answer(connection, request)
    given.put(request["query"])
    if error := told.get():
        raise error
    return {{"columns": [], "rows": [["done"]], "more": False}}
child.connected, child.answer = connected_beside_a_thread, answer_or_obey
child.main()
"""
"""The child's program, without some layers."""


@cache
def platform() -> Mapping[str, str]:
    """The layers as the real child reports them here."""
    seen: list[Mapping[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        engine = Ladybug(make_database(Path(folder) / "graph.lbug"), told=seen.append)
        for _ in range(2):
            assert engine.read_foreign("MATCH (a:Asset) RETURN count(a)", {}, 1).rows == ((ASSETS,),)
    (layers,) = seen
    return layers


def in_force(*layers: str) -> None:
    for layer in layers:
        if reason := platform()[layer]:
            pytest.skip(f"this platform refuses {layer}: {reason}")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_database(tmp_path_factory.mktemp("graph") / "graph.lbug")


@pytest.fixture
def target(database: Path) -> Iterator[SimpleNamespace]:
    """What any user may read, write and connect to. ``calls``: connections that came."""
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as server:
        folder, calls = Path(name), list[socket.socket]()
        folder.chmod(0o777)
        (folder / "readable").write_text('{"columns": [], "rows": [["done"]], "more": false}\n')
        closed = threading.Event()

        def listen() -> None:
            while not closed.is_set():
                connection, _ = server.accept()
                calls.append(connection)
                connection.close()

        listener = threading.Thread(target=listen)
        listener.start()
        port = server.getsockname()[1]
        yield SimpleNamespace(folder=folder, database=database, port=port, calls=calls)
        closed.set()
        socket.create_connection(server.getsockname()).close()
        listener.join()


def succeeds(target: SimpleNamespace, attack: str, layers: frozenset[str], patch: pytest.MonkeyPatch) -> bool:
    """Whether an attack does something in a child with these layers."""
    core, home = str(Path(child.__file__).parents[3]), str(target.folder)
    inside = target.folder / "inside.py"
    inside.write_text(INSIDE.format(core=core, home=home, off=sorted(ALL - layers)))
    patch.setattr(ladybug, "_CHILD", inside)
    code = ATTACKS[attack][0].replace("READABLE", f"{home}/readable").replace("FOLDER", home)
    os.mkfifo(target.folder / "other")
    with open_fifo(target.folder / "other") as other:
        try:
            rows = Ladybug(target.database).read_foreign(code.replace("PORT", str(target.port)), {}, 5).rows
        except GraphError:
            rows = ()
        assert select.select([other], [], [], 10)[0], "the other process is still there"
    (target.folder / "other").unlink()
    return bool(rows or target.calls or any(target.folder.glob("made*")))


@contextmanager
def open_fifo(path: Path) -> Iterator[int]:
    """To be read: at its end when everybody who writes has gone."""
    fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield fifo
    finally:
        os.close(fifo)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_fails_in_the_sandbox_and_succeeds_without(
    target: SimpleNamespace, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = frozenset(layer for layer, reason in platform().items() if not reason)
    assert succeeds(target, attack, here, monkeypatch) == here.isdisjoint(ATTACKS[attack][1])
    assert succeeds(target, attack, frozenset(), monkeypatch)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_each_layer_alone_refuses_what_the_documentation_says(
    target: SimpleNamespace, attack: str, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_force(layer)
    assert succeeds(target, attack, frozenset({layer}), monkeypatch) == (layer not in ATTACKS[attack][1])


def test_the_sandbox_is_in_force_where_the_kernel_has_it() -> None:
    """Otherwise the tests above would skip what a mistake of ours has switched off."""
    assert platform()["limits"] == ""
    calls = ctypes.CDLL(None)
    if calls.prctl(21, 0, 0, 0, 0) >= 0:  # PR_GET_SECCOMP
        assert platform()["seccomp"] == ""
    if calls.syscall(444, None, 0, 1) > 0:
        assert platform()["landlock"] == ""


PROCESS: Final = 4711


def decided(machine: str, number: int, argument: int = 0, architecture: int | None = None) -> int:
    """What the filter returns for a call: its instructions, run as in the kernel."""
    own = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    data = struct.pack("=iIQ6Q", number, architecture or own, 0, argument, *[0] * 5)
    program = list(struct.iter_unpack("HBBI", sandbox.filter_for(machine, PROCESS)))
    value = at = 0
    while True:
        code, so, otherwise, operand = program[at]
        at += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x15:
            at += so if value == operand else otherwise
        else:
            raise AssertionError(code)


@pytest.mark.parametrize("machine", sandbox.PROCESSORS)
def test_the_filter_allows_its_calls_and_nothing_else(machine: str) -> None:
    """Also for the processor of Lambda, which is not that of the tests."""
    processor = sandbox.PROCESSORS.index(machine)
    known = {numbers[processor] for numbers in sandbox.CALLS.values()} - {None}
    own = {name: numbers[processor] for name, numbers in sandbox.OWN_CALLS.items()}
    allowed = {number for number in range(1_024) if decided(machine, number) == 0x7FFF0000}
    assert allowed == {*known, own["prlimit64"]}
    assert decided(machine, own["tgkill"], PROCESS) == 0x7FFF0000
    for number, argument in ((own["tgkill"], PROCESS + 1), (own["prlimit64"], 1), (0x40000000, 0)):
        assert decided(machine, number, argument) == 0x00050001  # EPERM
    assert decided(machine, 0, architecture=0x40000003) == 0x80000000  # 32-bit calls have other numbers


@pytest.mark.parametrize(("machine", "first"), [("x86_64", (273, 334)), ("aarch64", (99, 293))])
def test_a_thread_may_begin_under_the_filter(machine: str, first: tuple[int, ...]) -> None:
    """set_robust_list and rseq. The engine's threads may get the processor only when the filter is set; glibc aborts
    the process if their rseq is refused."""
    assert [decided(machine, number) for number in first] == [0x7FFF0000] * 2


HEADERS: Final = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+) (\d+)"),
    "aarch64": ("/usr/include/asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+) (\d+)"),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_the_kernels(machine: str) -> None:
    path, form = HEADERS[machine]
    if not Path(path).exists():
        pytest.skip(f"{path} is missing: apt-get install linux-libc-dev")
    known = {name: int(number) for name, number in re.findall(form, Path(path).read_text())}
    if machine == "aarch64":
        known["newfstatat"] = known["fstatat"]
    for name, numbers in {**sandbox.CALLS, **sandbox.OWN_CALLS}.items():
        assert numbers[sandbox.PROCESSORS.index(machine)] in (None, known.get(name)), name
