"""The OpenTelemetry Collector itself, on loopback: its OTLP receiver over HTTP, and a file of what it accepted.

Built by `.ci/install_otel_collector.sh`. tests/servers/otlp.py is the fast fake.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.servers.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTALL: Final = "bash .ci/install_otel_collector.sh"
PATIENCE: Final = 120.0

_CONFIG: Final = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}
exporters:
  file: {{path: "{file}", flush_interval: 50ms}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
"""


@dataclass(frozen=True, slots=True)
class RealCollector:
    """``url`` is the value of OTEL_EXPORTER_OTLP_ENDPOINT."""

    url: str
    file: Path

    def documents(self, wanted: int) -> list[dict[str, Any]]:
        """The accepted requests, as it writes them; waits for this many."""
        deadline = time.monotonic() + PATIENCE
        while True:
            text = self.file.read_text() if self.file.exists() else ""
            documents = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
            if len(documents) >= wanted or time.monotonic() > deadline:
                return documents
            time.sleep(0.02)


def required_binary() -> str:
    """The collector's binary; skips the test without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for candidate in (shutil.which("otelcol"), str(cache / "dualtrack/bin/otelcol")):
        if candidate and Path(candidate).is_file():
            return candidate
    pytest.skip(f"the OpenTelemetry Collector is not installed: {INSTALL}")


@contextmanager
def serve_real_collector(folder: Path) -> Iterator[RealCollector]:
    """Run it, with its files in the folder."""
    port, config, log = free_port(), folder / "collector.yaml", folder / "collector.log"
    collector = RealCollector(f"http://127.0.0.1:{port}", folder / "spans.json")
    config.write_text(_CONFIG.format(port=port, file=collector.file))
    with (
        log.open("wb") as out,
        subprocess.Popen([required_binary(), "--config", str(config)], stdout=out, stderr=out) as process,
    ):
        try:
            deadline = time.monotonic() + PATIENCE
            while not _is_open(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
            yield collector
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
