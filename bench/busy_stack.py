"""A busy model and the whole local stack: ``uv run --group test python -m bench.busy_stack [CHATS] [SECONDS]``.

40 chats, without trouble and with 60 seconds of it unless told otherwise (docs/faults.md). Three minutes. Exit code 1
if an invariant is broken or a chat fails.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dualtrack_stack.local.stack import LocalStack
from rich.console import Console
from rich.table import Table

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from bench.busy_model import figures
from tests.clients.stack_client import KEYS, Root
from tests.drivers.busy_stack import BusyRun, busy, crowd
from tests.servers.provider import model_settings, serve_model
from tests.servers.tool_server import NAME, serve_tools

if TYPE_CHECKING:
    from dualtrack_stack.local.offline_model.server import OfflineModel

ARRIVING: float = 20.0
"""Seconds from the beginning of the trouble in which the chats are asked."""


def main(chats: int, seconds: float) -> int:
    """Run and print."""
    logging.disable(logging.WARNING)
    table = Table(title=f"{chats} chats of one round of tools; figures a chat")
    for heading in (
        "busy",
        "done",
        "failed",
        "credits",
        "model calls",
        "states",
        "paid s",
        "longest s",
    ):
        table.add_column(heading, justify="right")
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder, serve_model() as model, serve_tools() as tools:
        servers = json.dumps([{"name": NAME, "url": tools.url, "price_class": "other"}])
        settings = {**KEYS, **model_settings(model), "MCP_SERVERS": servers}
        settings.pop("VOYAGE_API_KEY")  # nobody serves embeddings here
        with LocalStack(Path(folder), environment=settings) as stack:
            root = Root(stack, Path(folder))
            root.invoke("Mcp", {"action": "refresh"})
            for lasts in (0.0, seconds):
                outcome = _run(root, model, chats, lasts)
                table.add_row(f"{lasts:.0f} s", *figures(outcome))
                print(f"{lasts:.0f} s", *figures(outcome), file=sys.stderr, flush=True)
                broken += outcome.wrong
                if outcome.ended["done"] < chats:
                    broken.append(f"{lasts} s: {outcome.ended}")
    Console(width=120).print(table)
    print(*broken, sep="\n")
    return 1 if broken else 0


def _run(root: Root, model: OfflineModel, chats: int, seconds: float) -> BusyRun:
    asked = crowd(root)
    if seconds:
        with busy(model):
            over = time.monotonic() + seconds
            asked.ask(chats, min(ARRIVING, seconds))
            time.sleep(max(0.0, over - time.monotonic()))
    else:
        asked.ask(chats, ARRIVING)
    asked.wait()
    return asked.counted(model)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(
        main(int(arguments[0]) if arguments else 40, float(arguments[1]) if len(arguments) > 1 else 60.0)
    )
