"""A conversation by a client of OpenAI's API, which resends its history, beside the same one by our own API.

    uv run --group test python -m tests.plugins.openai.measure_resent              # 100 turns
    uv run --group test python -m tests.plugins.openai.measure_resent --turns 10

Both run in one process over the offline model, whose tokens and cache are the service's by its rules: bytes that the
client sent, bytes that the model was sent, and the dollars of the model's calls, summaries included.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from dualtrack.models.prices import rates_of
from dualtrack.models.turn import Usage
from dualtrack.storage.conversations import aside_of
from dualtrack_stack.local.offline_model.script import ScriptedResponse
from rich.console import Console
from rich.table import Table

from tests.plugins.openai.door import Door, open_door

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWER: Final = (
    "A queue hides a message for its visibility timeout; DynamoDB keeps item {n} of table orders. " * 20
)
QUESTION: Final = "Question {n}: what does the queue do with message {n}, and how long does it take?"


@dataclass(frozen=True)
class Figures:
    """Bytes and nanodollars of a conversation, and how many conversations and model calls it took."""

    from_client: int
    to_model: int
    nanodollars: int
    conversations: int
    calls: int


def resent(door: Door, turns: int) -> Figures:
    """By the API of OpenAI's clients."""
    key, sent = door.key("resending"), 0
    chats: list[str] = []
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        _answer(door, n)
        messages.append({"role": "user", "content": QUESTION.format(n=n)})
        body = {"model": "assistant", "messages": messages}
        sent += len(json.dumps(body).encode())
        response = door.send(key, body).raise_for_status().json()
        chats.append(response["id"].removeprefix("chatcmpl-"))
        messages.append({"role": "assistant", "content": response["choices"][0]["message"]["content"]})
        door.machine.wait()
    return _figures(door, "resending", sent, chats)


def native(door: Door, turns: int) -> Figures:
    """By ``POST /v1/chats``."""
    conversation, sent = "", 0
    chats: list[str] = []
    for n in range(turns):
        _answer(door, n)
        question = QUESTION.format(n=n)
        sent += len(json.dumps({"message": question, "conversation_id": conversation}).encode())
        chat = door.world.ask(question, "native", conversation)
        conversation = chat.conversation_id
        chats.append(chat.chat_id)
    return _figures(door, "native", sent, chats)


def _answer(door: Door, n: int) -> None:
    door.world.model.script.add(ScriptedResponse(match="turn", text=ANSWER.format(n=n).strip()))


def _figures(door: Door, user: str, sent: int, chats: Sequence[str]) -> Figures:
    """``sent``: bytes of the client. Begins anew with the model's requests."""
    world, conversations = door.world, door.conversations(user)
    requests = world.model.requests
    spent = 0
    for chat_id in chats:
        chat = world.stores.chats.load(user, chat_id)
        assert chat is not None
        tokens = {field.name: chat.usage.get(field.name, 0) for field in fields(Usage)}
        usage = Usage(**tokens)
        spent += rates_of(world.model_name, usage.prompt_tokens).nanodollars(usage)
    for conversation in conversations:
        chats_table = world.stores.conversations
        spent += aside_of(chats_table.client, chats_table.table, user, conversation.conversation_id)
    to_model = sum(len(json.dumps(request.body).encode()) for request in requests)
    figures = Figures(sent, to_model, spent, len(conversations), len(requests))
    world.model.reset()
    return figures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    turns = parser.parse_args().turns
    table = Table(title=f"A conversation of {turns} turns")
    for heading in ("", "KB from client", "KB to model", "dollars", "conversations", "calls"):
        table.add_column(heading, justify="right" if heading else "left")
    with open_door() as door:
        for user in ("resending", "native"):
            door.world.stores.ledger.grant(user, "bench", 10 * turns, "a bench", door.world.clock())
        for name, run in (("resent history", resent), ("our own API", native)):
            got = run(door, turns)
            table.add_row(
                name,
                f"{got.from_client / 1000:,.0f}",
                f"{got.to_model / 1000:,.0f}",
                f"{got.nanodollars / 1e9:.5f}",
                str(got.conversations),
                str(got.calls),
            )
    Console().print(table)


if __name__ == "__main__":
    main()
