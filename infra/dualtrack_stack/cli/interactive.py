"""``dualtrack chat`` without MESSAGE: a conversation on a terminal, question by question."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from dualtrack.message_files import MESSAGE_CHARACTERS
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings

from dualtrack_stack.cli.asking import Asking
from dualtrack_stack.cli.client import ClientError, RequestRefused
from dualtrack_stack.cli.command import Termination, refusal
from dualtrack_stack.cli.conversation_commands import (
    columns,
    conversation_lines,
    first_page,
    listed,
    record_lines,
    whole_conversation,
    whole_record,
)
from dualtrack_stack.cli.explain_commands import receipt_of, text_of, told_to_its_operator
from dualtrack_stack.cli.files import BadFile, read_files
from dualtrack_stack.cli.id_types import wrong_id
from dualtrack_stack.cli.log_commands import where_tools_failed
from dualtrack_stack.cli.progress import OutputReader, view_on
from dualtrack_stack.cli.reading import read
from dualtrack_stack.cli.talk import OFFLINE, OutgoingMessage, ask, follow
from dualtrack_stack.cli.target import command_line
from dualtrack_stack.cli.tool_commands import tool_lines
from dualtrack_stack.cli.transcript import is_cut, one_line
from dualtrack_stack.cli.watch_commands import cancel_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dualtrack import answers
    from prompt_toolkit.key_binding import KeyPressEvent

    from dualtrack_stack.cli.client import ApiClient
    from dualtrack_stack.cli.progress import ChatOutput
    from dualtrack_stack.cli.talk import FollowedChat
    from dualtrack_stack.cli.target import ChosenStack, TargetOptions

HISTORY_FILE: Final = "questions"
"""In the state folder, readable only by its owner; questions to a remote stack are not stored."""

_LISTED: Final = "10"


@dataclass(frozen=True, slots=True)
class TypedMessage:
    """A question."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """``/name argument``."""

    name: str
    argument: str


def parse(line: str) -> TypedMessage | Command | None:
    """Parse the input; None if it is blank. A message that begins with a slash is entered with two."""
    text = line.strip()
    if not text:
        return None
    if text.startswith("/") and not text.startswith("//"):
        name, _, argument = text[1:].partition(" ")
        return Command(name, argument.strip())
    return TypedMessage(text[1:] if text.startswith("//") else text)


class LeaveConversation(Exception):
    """The user has left the conversation."""


@dataclass
class OpenConversation:
    """The target of the next question, and its attachments."""

    stack: TargetOptions
    target: ChosenStack
    client: ApiClient
    next: OutgoingMessage
    last_chat: str = ""
    last_query: str = ""
    paths: list[Path] = field(default_factory=list)
    in_full: bool = False

    def enter(self, line: str) -> None:
        """Run the command or ask the question; errors are printed and the conversation continues. Raises
        `LeaveConversation`."""
        entered = parse(line)
        try:
            if isinstance(entered, TypedMessage):
                self._ask(entered.text)
            elif entered is not None:
                self._command(entered)
        except RequestRefused as refused:
            refused.grants = self.target.grants
            _complain(refusal(refused))
        except (ClientError, BadFile) as problem:
            _complain(str(problem))

    def _ask(self, text: str) -> None:
        if len(text) > MESSAGE_CHARACTERS:
            raise BadFile(
                f"That has {len(text):,} characters; at most {MESSAGE_CHARACTERS:,} are allowed. Send it as "
                f"a /file."
            )
        files = (*self.next.files, *read_files(self.paths))
        self._send(replace(self.next, text=text, files=files))

    def _send(self, message: OutgoingMessage) -> None:
        with self._view() as view:
            started = ask(self.client, view, message)
            self.next, self.last_chat = OutgoingMessage("", started.conversation_id), started.chat_id
            self.last_query = started.message_id
            self.paths.clear()
            outcome = self._follow(view)
        if outcome.problem:
            _complain(told_to_its_operator(self.target, outcome).problem)
        for line in where_tools_failed(self.stack, outcome.chat):
            _complain(line)
        if outcome.chat and is_cut(outcome.chat):
            click.echo("/continue lets the answer go on.")
        if isinstance(outcome.interrupted, Termination):
            raise outcome.interrupted

    def _view(self) -> ChatOutput:
        return view_on(sys.stdout, OutputReader(self.target.user, self.target.grants, self.in_full))

    def _follow(self, view: ChatOutput) -> FollowedChat:
        decide = Asking(self.client, view)
        outcome = follow(self.client, view, self.last_chat, to_end=False, decide=decide)
        if outcome.is_paused:
            view.notice("It waits for your decision: /decide asks again, /stop stops it.")
        return outcome

    def decide(self, _argument: str) -> None:
        if not self.last_chat:
            raise BadFile("Nothing was asked yet.")
        with self._view() as view:
            self._follow(view)

    def go_on(self, _argument: str) -> None:
        self._send(OutgoingMessage("", self._here(), goes_on=True))

    def stop(self, _argument: str) -> None:
        if not self.last_chat:
            raise BadFile("Nothing was asked yet.")
        _print(cancel_lines(self.client.cancel(self.last_chat)))

    def _command(self, command: Command) -> None:
        does = _COMMANDS.get(command.name)
        if does is None:
            _complain(f"There is no /{one_line(command.name, 30)}. /help lists the commands.")
            return
        does[1](self, command.argument)

    def help(self, _argument: str) -> None:
        for name, (words, _) in _COMMANDS.items():
            syntax, _, meaning = words.partition("  ")
            click.echo(f"  {f'/{name} {syntax}'.rstrip():<22} {meaning}")
        click.echo("  Enter sends; Alt+Enter starts a new line; pasted text stays one message.")
        click.echo("  Ctrl-C stops an answer, Ctrl-D ends. // begins a question with a slash.")

    def new(self, profile: str) -> None:
        self.next = OutgoingMessage("", profile=profile or None)
        click.echo(f"A new conversation{f' with {one_line(profile, 60)}' if profile else ''}.")

    def open(self, conversation: str) -> None:
        _check_id("conversation_id", conversation)
        answer = self.client.call("GET", f"/v1/conversations/{conversation}")
        self.next = OutgoingMessage("", answer["conversation_id"])
        click.echo(f"Continuing: {one_line(answer['title'], 100)}")

    def fork(self, query: str) -> None:
        conversation, before = self._here(), query or self.last_query
        if not before:
            raise BadFile("Before which question? /fork q2")
        _check_id("query_id", before)
        self.next = OutgoingMessage("", fork=conversation, before=before)
        click.echo(f"In place of {before}, in a new conversation; this one stays:")

    def file(self, path: str) -> None:
        if not path:
            raise BadFile("Which file? /file PATH")
        wanted = [*self.paths, Path(path).expanduser()]
        read_files(wanted)  # files that cannot be sent are reported now
        self.paths = wanted
        click.echo(f"Attached to the next question: {', '.join(file.name for file in wanted)}")

    def show(self, record: str) -> None:
        conversation = self._here()
        if record:
            _check_id("record_id", record)
            _print(record_lines(whole_record(self.client, conversation, record)))
        else:
            whole = whole_conversation(self.client, conversation, "full")
            _print(conversation_lines(whole, datetime.now(UTC)))

    def cost(self, chat: str) -> None:
        if not chat and not self.last_chat:
            raise BadFile("Nothing was asked yet.")
        if chat:
            _check_id("chat_id", chat)
        _print(text_of(receipt_of(self.target, chat or self.last_chat), columns()))

    def credits(self, _argument: str) -> None:
        balance: answers.Credits = self.client.call("GET", "/v1/credits")
        click.echo(f"{balance['available']:,} credits available, plan {balance['plan']}")
        if self.target.grants:
            click.echo(f"More: {self.target.grants}")

    def conversations(self, search: str) -> None:
        params = {"limit": _LISTED, **({"q": search} if search else {})}
        conversations = first_page(self.client, params)["conversations"]
        _print(listed(conversations, datetime.now(UTC), columns()) if conversations else ["None."])

    def tools(self, _argument: str) -> None:
        _print(tool_lines(self.client.call("GET", "/v1/tools")))

    def quit(self, _argument: str) -> None:
        raise LeaveConversation

    def _here(self) -> str:
        if self.next.conversation is None:
            raise BadFile("Nothing was asked yet in this conversation.")
        return self.next.conversation


_COMMANDS: Final[Mapping[str, tuple[str, Callable[[OpenConversation, str], None]]]] = {
    "help": ("  list the commands", OpenConversation.help),
    "new": ("[PROFILE]  start a new conversation", OpenConversation.new),
    "open": ("ID  continue another conversation", OpenConversation.open),
    "fork": (
        "[QUERY]  ask the last question, or q2, in another way",
        OpenConversation.fork,
    ),
    "file": ("PATH  attach a file to the next question", OpenConversation.file),
    "show": ("[RECORD]  show this conversation, or a whole record such as q1-t1", OpenConversation.show),
    "cost": ("[CHAT]  show what the last answer did and cost", OpenConversation.cost),
    "continue": ("  let an answer go on that was cut off at its limit of length", OpenConversation.go_on),
    "decide": ("  decide on what the last question waits for", OpenConversation.decide),
    "stop": ("  stop the last question's chat, if it waits", OpenConversation.stop),
    "credits": ("  show the available credits", OpenConversation.credits),
    "conversations": (
        "[TEXT]  list the latest conversations, or those with TEXT",
        OpenConversation.conversations,
    ),
    "tools": ("  list the tools and their prices", OpenConversation.tools),
    "quit": ("  quit, like Ctrl-D", OpenConversation.quit),
}


def converse(
    stack: TargetOptions,
    target: ChosenStack,
    client: ApiClient,
    first: OutgoingMessage,
    *,
    in_full: bool = False,
) -> None:
    """Ask and answer until the user leaves. ``first`` is the target of the first question."""
    talk = OpenConversation(stack, target, client, first, in_full=in_full)
    if target.mode == "offline":
        click.echo(click.style(OFFLINE, fg="yellow"))
    who = f"{one_line(target.user, 64)}, " if target.user else ""
    where = first.conversation or "a new conversation"
    click.echo(f"{who}{where}. /help lists the commands, Ctrl-D ends.")
    prompt = _prompt(stack)
    while True:
        try:
            click.echo()
            talk.enter(read(prompt))
        except (EOFError, LeaveConversation):
            break
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, Termination):
                raise
            click.echo("Ctrl-D or /quit ends.")
    if talk.next.conversation:
        on = command_line(stack, "chat", "--conversation", talk.next.conversation)
        click.echo(f"Continue with: {on}")


def _prompt(stack: TargetOptions) -> PromptSession[str]:
    history: FileHistory | InMemoryHistory = InMemoryHistory()
    if stack.url is None:
        path = stack.state_dir / HISTORY_FILE
        path.touch(mode=0o600)
        history = FileHistory(path)
    return PromptSession(history=history, key_bindings=_keys())


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _check_id(name: str, text: str) -> None:
    if problem := wrong_id(name, text):
        raise BadFile(problem)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _complain(problem: str) -> None:
    click.echo(f"Error: {problem}", err=True)
