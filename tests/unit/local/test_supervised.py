"""What a project's tools start ends with them, and they have the memory of their function."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.roots import own_python

if TYPE_CHECKING:
    from pathlib import Path

STARTS = """
import subprocess, sys
sleep = [sys.executable, "-c", "import time; print('there', flush=True); time.sleep(600)"]
there = [subprocess.Popen(sleep, stdout=subprocess.PIPE), subprocess.Popen(sleep, stdout=subprocess.PIPE, start_new_session=True)]
for one in there:
    one.stdout.readline()
if sys.argv[1] == "orphan":  # one whose parent has ended
    code = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, start_new_session=True).pid)"
    print(subprocess.check_output([sys.executable, "-c", code, *sleep], text=True).strip())
print(*[one.pid for one in there], flush=True)
if sys.argv[1] == "waits":
    sys.stdin.read()
"""


def run(tmp_path: Path, code: str, *arguments: str, memory: int = 512, **more: Any) -> subprocess.Popen[str]:
    script = tmp_path / "tool.py"
    script.write_text(textwrap.dedent(code))
    command = own_python(
        "dualtrack_stack.local.supervised", str(memory), sys.executable, str(script), *arguments
    )
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)


def gone(pid: int) -> bool:
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return listed == "" or listed.startswith("Z")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps what detaches itself")
def test_what_it_started_ends_when_it_ends(tmp_path: Path) -> None:
    with run(tmp_path, STARTS, "orphan") as tool:
        assert tool.stdout is not None
        pids = [int(pid) for pid in tool.stdout.read().split()]
        assert tool.wait(60) == 0
    assert (len(pids), [gone(pid) for pid in pids]) == (3, [True] * 3)


def test_what_it_started_ends_with_a_worker_that_is_ended(tmp_path: Path) -> None:
    with run(tmp_path, STARTS, "waits") as tool:
        assert tool.stdout is not None
        pids = [int(pid) for pid in tool.stdout.readline().split()]
        assert not any(map(gone, pids))
        tool.send_signal(signal.SIGTERM)
        tool.wait(60)
    assert all(map(gone, pids))


def test_what_it_started_ends_with_a_killed_stack(tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text(STARTS)
    command = own_python("dualtrack_stack.local.supervised", "512", sys.executable, str(script), "waits")
    code = f"import subprocess; subprocess.run({command!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stack:
        assert stack.stdout is not None
        pids = [int(pid) for pid in stack.stdout.readline().split()]
        stack.kill()
        stack.wait(60)
        assert stack.stdout.read() == "", "the last of them has closed it"
    assert all(map(gone, pids))


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no such limit")
@pytest.mark.parametrize(("megabytes", "said"), [(100, "kept"), (600, "MemoryError")])
def test_it_has_the_functions_memory(tmp_path: Path, megabytes: int, said: str) -> None:
    code = f"""
    import subprocess, sys
    take = "try: len(b'x' * ({megabytes} << 20)); print('kept')\\nexcept MemoryError: print('MemoryError')"
    exec(take)
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", take])
    """
    with run(tmp_path, code) as tool:
        assert tool.stdout is not None
        assert tool.stdout.read().split() == [said, said]
