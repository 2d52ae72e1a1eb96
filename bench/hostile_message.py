"""Mean time of a chat with a message designed to stall, beside a harmless one of the same length, in one run.

    uv run --group test python -m bench.hostile_message

Each message is sent in its own conversation, followed by several short questions, because every later query reads the
message again. The model answers at once.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import LocalStack
from rich.console import Console
from rich.table import Table

from tests.clients.stack_client import Person, Root

LENGTH: Final = 32_000
FOLLOWING: Final = 4
ROUNDS: Final = 5
MESSAGES: Final = {
    "harmless": "What is the answer to this? ",
    "[ and line breaks": "\n",
    "[ID: again and again": "[ID:",
    "zero-width spaces": "\u200b",
    "# and spaces": " ",
}


def message(head: str, unit: str) -> str:
    """``LENGTH`` characters: a bracket, the pattern, and an end that does not match."""
    return (head + unit * LENGTH)[: LENGTH - 1] + "x"


def asked(person: Person, text: str, conversation_id: str = "") -> tuple[float, str]:
    """Seconds from the request to `done`, and the conversation."""
    started = time.monotonic()
    chat = person.ask(text, conversation_id)
    assert chat["status"] == "done", chat
    return time.monotonic() - started, chat["conversation_id"]


def measure(person: Person) -> Table:
    """The table; the messages take turns, so that the machine's noise affects all of them equally."""
    first: dict[str, list[float]] = {name: [] for name in MESSAGES}
    later: dict[str, list[float]] = {name: [] for name in MESSAGES}
    asked(person, "warm up")
    for _ in range(ROUNDS):
        for name, unit in MESSAGES.items():
            seconds, conversation_id = asked(person, message("# [" if unit == " " else "[", unit))
            first[name].append(seconds)
            later[name] += [asked(person, "And then?", conversation_id)[0] for _ in range(FOLLOWING)]
    table = Table(title=f"Mean seconds of a chat with {LENGTH} characters, {ROUNDS} rounds")
    for heading in ("message", "its own chat", "each of the next queries"):
        table.add_column(heading, justify="right" if heading != "message" else "left")
    for name in MESSAGES:
        table.add_row(name, f"{statistics.mean(first[name]):.2f}", f"{statistics.mean(later[name]):.2f}")
    return table


def main() -> None:
    """Start a stack and print the table."""
    with (
        serve_offline_model() as model,
        serve_sample_docs() as documents,
        tempfile.TemporaryDirectory() as folder,
    ):
        environment = {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": model.url,
            "CONTEXT7_BASE_URL": documents,
        }
        with LocalStack(folder, environment=environment) as stack:
            root = Root(stack, Path(folder))
            person = Person(stack.url, stack.token("user-1"))
            root.stores().ledger.grant(person.id, "bench", 10_000, "bench", time.time())
            Console(width=100).print(measure(person))


if __name__ == "__main__":
    main()
