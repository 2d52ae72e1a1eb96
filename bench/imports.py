"""CPU of importing each handler beside creating a boto3 DynamoDB client, in fresh interpreters.

    uv run --group test python -m bench.imports

Each figure is the least of several runs of user + system time, less that of an empty interpreter; the runs of all rows
are interleaved, so that the machine's other work affects all of them equally. The development environment has more
packages than a function's layers: aiohttp, which voyageai depends on and which the anthropic SDK imports if present, is
hidden from all functions but `search`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from dualtrack.api.streamed import streamed_apis
from rich.console import Console
from rich.table import Table

from tests.drivers.zygote import BLANK, FUNCTIONS, HANDLERS

ROOT: Final = Path(__file__).parents[1]
RUNS: Final = 7
AIMS: Final = {"abort": 1.5, "sweep": 1.5, "credit_reset": 1.5, "api": 2.5, "turn": 5.5, "summarise": 5.5}
BOTO3: Final = "import boto3; boto3.client('dynamodb')"

ENVIRONMENT: Final = {
    **BLANK,
    "HOME": os.environ.get("HOME", "/"),
    "PATH": os.environ["PATH"],
}


def cpu_seconds(code: str) -> float:
    """User and system time of an interpreter that runs the code."""
    measured = (
        f"import os, sys\nsys.path[:0] = [{str(ROOT / 'layers/core/python')!r}]\n{code}\n"
        "t = os.times(); print(t.user + t.system)"
    )
    done = subprocess.run(
        [sys.executable, "-c", measured], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def code_of(handler: str) -> str:
    """Code that imports the handler as Lambda does; packages that its layers do not have are hidden."""
    hidden = "" if handler == "search" else "sys.modules['aiohttp'] = None\n"
    return f"{hidden}sys.path[:0] = [{str(FUNCTIONS[handler])!r}]\nimport handler"


def stream_codes() -> dict[str, str]:
    """The function `stream`, which is served as an app, and with what a plug-in's own API loads at its first
    request."""
    app = (
        f"sys.modules['aiohttp'] = None\nsys.path[:0] = [{str(ROOT / 'functions' / 'stream')!r}]\nimport app"
    )
    opened = (
        "from dualtrack.api.streamed import StreamServices, streamed_apis\nfrom dualtrack.settings import Settings\n"
        "next(api for api in streamed_apis() if api.name == {name!r}).open("
        "StreamServices(Settings(), *[None] * 5))"
    )
    return {
        "stream": app,
        **{f"stream, with {api.name}": f"{app}\n{opened.format(name=api.name)}" for api in streamed_apis()},
    }


def main() -> None:
    """Print the table."""
    codes = {"(empty)": "", "boto3 client": BOTO3, **{name: code_of(name) for name in HANDLERS}}
    codes |= stream_codes()
    least = {name: float("inf") for name in codes}
    for _ in range(RUNS):
        for name, code in codes.items():
            least[name] = min(least[name], cpu_seconds(code))
    base = least["boto3 client"] - least["(empty)"]
    table = Table(title=f"Import CPU, least of {RUNS} interleaved runs")
    for heading in ("handler", "ms", "× boto3 client", "aim"):
        table.add_column(heading, justify="left" if heading == "handler" else "right")
    for name in codes:
        if name != "(empty)":
            spent = least[name] - least["(empty)"]
            table.add_row(
                name, f"{spent * 1000:.0f}", f"{spent / base:.2f}", f"≤ {AIMS[name]}" if name in AIMS else ""
            )
    Console().print(table)


if __name__ == "__main__":
    main()
