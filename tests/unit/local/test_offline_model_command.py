"""The two servers as commands: they report when they are ready, and stop on a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "module", ["dualtrack_stack.local.offline_model", "dualtrack_stack.local.sample_docs"]
)
def test_ready_and_gone(module: str, tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    command = [sys.executable, "-m", module, "--port", "0", "--port-file", str(port_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready, url = process.stdout.readline().split()
            assert ready == "ready"
            assert url == f"http://127.0.0.1:{port_file.read_text()}"
            assert httpx.get(f"{url}/health").json()["status"] == "ok"
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
    assert errors == ""
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_a_taken_port_is_reported() -> None:
    command = [sys.executable, "-m", "dualtrack_stack.local.sample_docs", "--port"]
    with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            port = first.stdout.readline().strip().rsplit(":", 1)[1]
            second = subprocess.run([*command, port], capture_output=True, text=True, timeout=30, check=False)
        finally:
            first.terminate()
            first.wait(30)
    assert second.returncode == 2
    assert f"port {port} is taken" in second.stderr
