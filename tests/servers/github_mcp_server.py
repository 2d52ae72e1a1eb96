"""GitHub's own MCP server: the real binary in HTTP mode on loopback, using a fake GitHub."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTALL = "bash .ci/install_github_mcp.sh"
START_SECONDS = 30


def binary() -> str | None:
    """The installed binary: GITHUB_MCP_SERVER, PATH, or where the install script puts it."""
    installed = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dualtrack/bin/github-mcp-server"
    )
    for candidate in (os.environ.get("GITHUB_MCP_SERVER"), shutil.which("github-mcp-server"), str(installed)):
        if candidate and Path(candidate).is_file():
            return candidate
    return None


def required_binary() -> str:
    """The binary; skips the test without it."""
    path = binary()
    if path is None:
        pytest.skip(f"github-mcp-server is not installed: {INSTALL}")
    return path


@dataclass
class GitHubMcpServer:
    """The process. It keeps its port across `kill` and `start`. Use as a context manager."""

    github_url: str
    arguments: Sequence[str] = ("--read-only", "--toolsets", "context,repos,git,issues,pull_requests,users")
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def running(self) -> bool:
        return self._process is not None

    def __enter__(self) -> GitHubMcpServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until it serves the route of the health check."""
        command = [required_binary(), "http", "--listen-host", "127.0.0.1", "--port", str(self.port)]
        environment = {"PATH": os.environ["PATH"], "GITHUB_HOST": self.github_url, "HOME": "/nonexistent"}
        self._process = subprocess.Popen(
            [*command, *self.arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError("github-mcp-server did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it, as when a task is lost."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"{self.url}.well-known/oauth-protected-resource", timeout=1
            ) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
