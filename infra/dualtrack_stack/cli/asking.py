"""Decisions of a person at a terminal on the open calls of a paused chat, one after the other."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack.frozen import thaw
from prompt_toolkit import PromptSession
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dualtrack_stack.cli.client import ClientError, RequestRefused
from dualtrack_stack.cli.command import refusal
from dualtrack_stack.cli.open_calls import (
    CHOICES,
    DESTROYS,
    KINDS,
    arguments_in,
    cut,
    key_in,
    keys_of,
    line_of,
    option_in,
    visible,
)
from dualtrack_stack.cli.reading import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dualtrack import answers
    from rich.console import RenderableType

    from dualtrack_stack.cli.client import ApiClient
    from dualtrack_stack.cli.progress import ChatOutput

ELSEWHERE: Final = frozenset({"already_decided", "not_paused", "expired"})
"""Refusals of a decision that came too late: the chat is shown as it is."""

_MOST_ARGUMENTS: Final = 40

DecisionJson = dict[str, Any]


def is_terminal() -> bool:
    """Whether somebody can be asked. A closed stream is None."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


@dataclass
class Asking:
    """`dualtrack_stack.cli.talk.Decide` at a terminal."""

    client: ApiClient
    view: ChatOutput
    prompt: PromptSession[str] = field(default_factory=PromptSession)
    descriptions: Mapping[str, str] | None = None

    def __call__(self, chat: answers.Chat) -> bool:
        """Whether every open call was decided; false if the person leaves some for later (Ctrl-D)."""
        pause = chat.get("pause")
        allowed: set[str] = set()
        with self.view.aside():
            try:
                for call in pause["calls"] if pause else ():
                    self._settle(chat["chat_id"], call, allowed)
            except EOFError:
                return False
        return True

    def _settle(self, chat_id: str, call: answers.OpenCall, allowed: set[str]) -> None:
        """Ask until the decision is taken, or was made elsewhere. What was just allowed is not asked for again."""
        console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
        console.print()
        for part in _drawn(call, self._description(call["tool"])):
            console.print(part)
        while True:
            decision = {"approve": True} if call["tool"] in allowed else self._ask(call, console)
            if decision is None:
                continue
            try:
                self.client.decide(chat_id, [{"id": call["id"], **decision}])
            except RequestRefused as refused:
                click.echo(f"Error: {refusal(refused)}", err=True)
                if refused.code not in ELSEWHERE:
                    continue
            if "for" in decision:
                allowed.add(call["tool"])
            return

    def _ask(self, call: answers.OpenCall, console: Console) -> DecisionJson | None:
        """What the person says; None if it was nothing."""
        kind = KINDS.get(call["kind"])
        if kind is None:
            console.print(f"This command cannot answer a call of kind {call['kind']}.")
            raise EOFError
        keys = keys_of(call)
        choices = ", ".join(f"{key} {CHOICES[key]}" for key in keys)
        console.print(f"{kind.asks} {choices}{', ' if keys else ' '}Ctrl-D later".strip(), style="yellow")
        line = read(self.prompt)
        if kind.typed:
            said = option_in(line, call)
            return {kind.typed: said} if said else None
        key = key_in(line, keys)
        return _SAYS[key](self, call) if key else None

    def _decline(self, _call: answers.OpenCall) -> DecisionJson:
        reason = read(self.prompt, "Reason (optional): ").strip()
        return {"approve": False, **({"reason": reason} if reason else {})}

    def _edit(self, call: answers.OpenCall) -> DecisionJson | None:
        before = thaw(call["input"])
        if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
            text = click.edit(json.dumps(before, indent=2, ensure_ascii=False) + "\n", extension=".json")
        else:
            text = read(self.prompt, "JSON: ", json.dumps(before))
        after = before if text is None else arguments_in(text)
        if after is None:
            click.echo("Error: these are no JSON arguments: write {…}.", err=True)
        elif after == before:
            click.echo("Nothing was changed.")
        else:
            return {"input": after}
        return None

    def _result(self, _call: answers.OpenCall) -> DecisionJson:
        return {"result": read(self.prompt, "Result: ")}

    def _description(self, tool: str) -> str:
        """What the tool does, as the stack says now; empty if it is gone, or cannot be asked."""
        if self.descriptions is None:
            try:
                offered: answers.Tools = self.client.call("GET", "/v1/tools")
                self.descriptions = {tool["name"]: tool["description"] for tool in offered["tools"]}
            except ClientError:
                self.descriptions = {}
        return self.descriptions.get(tool, "")


_SAYS: Final[Mapping[str, Callable[[Asking, answers.OpenCall], DecisionJson | None]]] = {
    "y": lambda *_: {"approve": True},
    "n": Asking._decline,
    "e": Asking._edit,
    "a": lambda *_: {"approve": True, "for": "conversation"},
    "r": Asking._result,
}


def _drawn(call: answers.OpenCall, description: str) -> Iterator[RenderableType]:
    """The call, as a person can judge it."""
    yield Text.assemble(
        ("? ", "yellow"), (line_of(call["tool"]), "bold"), (f"  {line_of(call['id'])}", "dim")
    )
    if description:
        yield Padding(Text(line_of(description, 300), style="dim"), (0, 0, 0, 2))
    if call.get("effect") == "destroys":
        yield Padding(Text(DESTROYS, style="bold red"), (0, 0, 0, 2))
    if call["kind"] == "question":
        yield Padding(Text(cut(visible(call["input"].get("question", "")))), (0, 0, 0, 2))
        options = call["input"].get("options") or ()
        yield from (Padding(Text(f"{n}. {line_of(one)}"), (0, 0, 0, 4)) for n, one in enumerate(options, 1))
    else:
        yield Padding(_arguments(call["input"]), (0, 0, 0, 2))


def _arguments(arguments: Mapping[str, Any]) -> RenderableType:
    if not arguments:
        return Text("without arguments", style="dim")
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", overflow="fold", max_width=20)
    table.add_column(overflow="fold")
    for name, value in list(arguments.items())[:_MOST_ARGUMENTS]:
        text = value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)
        table.add_row(line_of(name), Text(cut(visible(text))))
    if len(arguments) > _MOST_ARGUMENTS:
        table.add_row("…", f"{len(arguments) - _MOST_ARGUMENTS} more; e shows all")
    return table
