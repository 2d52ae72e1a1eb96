"""Decisions of a person at a terminal on the open calls of a paused chat, one after the other."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack.frozen import thaw
from dualtrack.visible import SIGN, as_json, on_a_line, parts, visible
from prompt_toolkit import PromptSession
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dualtrack_stack.cli.client import ClientError, RequestRefused
from dualtrack_stack.cli.command import refusal
from dualtrack_stack.cli.open_calls import (
    AGREE,
    CHOICES,
    DESTROYS,
    KINDS,
    arguments_in,
    key_in,
    keys_of,
    option_in,
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
_READ_ON: Final = "You have not seen all of it. Read on first: m."
_UNSEEN: Final = "What you wrote has characters that cannot be seen. It is this:"

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
        is_read = call["kind"] == "question" or _is_short(call["input"])
        while True:
            decision = (
                {"approve": True} if call["tool"] in allowed else self._ask(call, console, is_read=is_read)
            )
            if decision is None:
                continue
            if decision is _MORE:
                console.print(Padding(_arguments(call["input"], is_whole=True), (0, 0, 0, 2)))
                is_read = True
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

    def _ask(self, call: answers.OpenCall, console: Console, *, is_read: bool) -> DecisionJson | None:
        """What the person says; None if it was nothing. ``is_read``: whether all of the call was shown."""
        kind = KINDS.get(call["kind"])
        if kind is None:
            console.print(f"This command cannot answer a call of kind {call['kind']}.")
            raise EOFError
        keys = keys_of(call, is_read=is_read)
        choices = ", ".join(f"{key} {CHOICES[key]}" for key in keys)
        console.print(f"{kind.asks} {choices}{', ' if keys else ' '}Ctrl-D later".strip(), style="yellow")
        line = read(self.prompt)
        if kind.typed:
            said = option_in(line, call)
            return {kind.typed: said} if said else None
        key = key_in(line, keys)
        if not key and key_in(line, AGREE):
            console.print(_READ_ON, style="yellow")
        return _SAYS[key](self, call) if key else None

    def _decline(self, _call: answers.OpenCall) -> DecisionJson:
        reason = read(self.prompt, "Reason (optional): ").strip()
        return {"approve": False, **({"reason": reason} if reason else {})}

    def _edit(self, call: answers.OpenCall) -> DecisionJson | None:
        before = thaw(call["input"])
        if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
            text = click.edit(as_json(before, indent=2) + "\n", extension=".json")
        else:
            text = read(self.prompt, "JSON: ", json.dumps(before))
        after = before if text is None else arguments_in(text)
        if after is None:
            click.echo("Error: these are no JSON arguments: write {…}.", err=True)
        elif after == before:
            click.echo("Nothing was changed.")
        elif text is None or not SIGN.search(text) or self._means(after):
            return {"input": after}
        return None

    def _means(self, arguments: DecisionJson) -> bool:
        """Whether these arguments are meant, which have characters that their writer cannot have seen."""
        console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
        console.print(_UNSEEN, style="yellow")
        console.print(Padding(_arguments(arguments, is_whole=True), (0, 0, 0, 2)))
        console.print("May it run like this? y yes, n no", style="yellow")
        return key_in(read(self.prompt), "yn") == "y"

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


_MORE: Final[DecisionJson] = {}
"""Not a decision yet: the person reads on."""

_SAYS: Final[Mapping[str, Callable[[Asking, answers.OpenCall], DecisionJson | None]]] = {
    "y": lambda *_: {"approve": True},
    "n": Asking._decline,
    "e": Asking._edit,
    "a": lambda *_: {"approve": True, "for": "conversation"},
    "r": Asking._result,
    "m": lambda *_: _MORE,
}


def _drawn(call: answers.OpenCall, description: str) -> Iterator[RenderableType]:
    """The call, as a person can judge it. A question, which is answered in words, is shown whole."""
    yield Text.assemble(("? ", "yellow"), _marked(call["tool"], "bold"), (f"  {visible(call['id'])}", "dim"))
    if description:
        yield Padding(Text(on_a_line(description, 300), style="dim"), (0, 0, 0, 2))
    if call.get("effect") == "destroys":
        yield Padding(Text(DESTROYS, style="bold red"), (0, 0, 0, 2))
    if call["kind"] == "question":
        yield Padding(_marked(call["input"].get("question", "")), (0, 0, 0, 2))
        options = call["input"].get("options") or ()
        yield from (
            Padding(Text.assemble(f"{number}. ", _marked(option)), (0, 0, 0, 4))
            for number, option in enumerate(options, 1)
        )
    else:
        yield Padding(_arguments(call["input"]), (0, 0, 0, 2))


def _marked(text: object, style: str = "") -> Text:
    """The visible text, in which the numbers of hidden characters are marked: nobody can write one like them."""
    drawn, at = Text(style=style), 0
    plain = str(text).replace("\r\n", "\n")
    for sign in SIGN.finditer(plain):
        drawn.append(plain[at : sign.start()]).append(visible(sign[0]), "reverse")
        at = sign.end()
    return drawn.append(plain[at:])


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else as_json(thaw(value))


def _is_short(arguments: Mapping[str, Any]) -> bool:
    """Whether these arguments are shown whole at first."""
    texts = [text for name, value in arguments.items() for text in (name, _text_of(value))]
    return len(arguments) <= _MOST_ARGUMENTS and not any(parts(text)[1] for text in texts)


def _arguments(arguments: Mapping[str, Any], *, is_whole: bool = False) -> RenderableType:
    if not arguments:
        return Text("without arguments", style="dim")
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", overflow="fold", max_width=20)
    table.add_column(overflow="fold")
    shown = arguments if is_whole else dict(list(arguments.items())[:_MOST_ARGUMENTS])
    for name, value in shown.items():
        draw = _marked if is_whole else _beginning_and_end
        table.add_row(draw(name), draw(_text_of(value)))
    if len(arguments) > len(shown):
        table.add_row("…", f"{len(arguments) - len(shown)} more; m shows all")
    return table


def _beginning_and_end(text: str) -> Text:
    begin, left, end = parts(text)
    if not left:
        return _marked(begin)
    note = (f"\n… {left:,} more characters; m shows all …\n", "yellow")
    return Text.assemble(_marked(begin), note, _marked(end))
