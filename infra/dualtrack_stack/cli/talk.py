"""One chat from its start to its answer: start, follow, stop with Ctrl-C (CONTRACT 1, `chat`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.frozen import freeze

from dualtrack_stack.cli.client import ChatEvent, ClientError, RequestRefused
from dualtrack_stack.cli.transcript import LEFT, one_line
from dualtrack_stack.cli.uploads import attachments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack import answers
    from dualtrack.frozen import JsonObject

    from dualtrack_stack.cli.client import AcceptedChat, ApiClient
    from dualtrack_stack.cli.files import LocalFile
    from dualtrack_stack.cli.progress import ChatOutput

OFFLINE: Final = "The offline model answers, no language model: set ANTHROPIC_API_KEY for Claude."


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message and its target: ``conversation``, a new one with ``profile``, or a fork of ``fork`` that shares the
    queries before ``before``."""

    text: str
    conversation: str | None = None
    fork: str | None = None
    before: str | None = None
    profile: str | None = None
    files: tuple[LocalFile, ...] = ()
    schema: JsonObject | None = None
    """The JSON Schema that the answer has to fit."""
    goes_on: bool = False
    """Whether the conversation's last answer goes on, in place of the text."""


@dataclass(frozen=True, slots=True)
class FollowedChat:
    """How a chat ended, as far as it was followed. ``chat`` is the chat object, None if it could not be
    fetched; ``interrupted`` is the interruption (Ctrl-C, SIGTERM), to be raised after the outcome is printed."""

    chat_id: str
    answered: bool
    chat: answers.Chat | None
    problem: str = ""
    interrupted: KeyboardInterrupt | None = None

    @property
    def is_paused(self) -> bool:
        """Whether it waits for decisions."""
        return self.chat is not None and self.chat["status"] == "paused"


Decide = Callable[["answers.Chat"], bool]
"""Decides on the open calls of a paused chat; false if nobody is there to be asked, or they leave it open."""


def nobody(_chat: answers.Chat) -> bool:
    """`Decide` where nobody can be asked."""
    return False


def ask(client: ApiClient, view: ChatOutput, question: OutgoingMessage) -> AcceptedChat:
    """Start the chat of a question, whose large files are uploaded first."""
    files = attachments(client, question.files, view.notice)
    if question.fork is None or question.before is None:
        text = None if question.goes_on else question.text
        return client.start_chat(text, question.conversation, question.profile, files, question.schema)
    return _ask_in_fork(client, view, question, files, question.fork, question.before)


def _ask_in_fork(
    client: ApiClient,
    view: ChatOutput,
    question: OutgoingMessage,
    files: Sequence[Mapping[str, str]],
    parent: str,
    before: str,
) -> AcceptedChat:
    """Make a fork and start its first chat; if the chat is refused, the fork is deleted."""
    fork = client.fork(parent, before)
    try:
        started = client.start_chat(question.text, fork, attachments=files, schema=question.schema)
    except RequestRefused as refusal:
        if refusal.status < 500:  # for other errors the chat may run
            with contextlib.suppress(ClientError):
                client.delete_conversation(fork)
        raise
    view.notice(f"Forked before {one_line(before, 20)}: {one_line(fork, 100)}")
    return started


def follow(
    client: ApiClient,
    view: ChatOutput,
    chat_id: str,
    *,
    to_end: bool,
    cancels: bool = True,
    decide: Decide = nobody,
) -> FollowedChat:
    """Show a chat until its answer is final, or with ``to_end`` until it is done; or until it waits
    for decisions that ``decide`` does not make.

    Ctrl-C shows what has arrived, and stops the chat if ``cancels`` is set.
    """
    shown = _Shown(client, view, chat_id, to_end)
    try:
        while True:
            if outcome := shown.go_on():
                return outcome
            chat = client.chat(chat_id)
            if chat["status"] == "paused" and not decide(chat):
                return FollowedChat(chat_id, answered=False, chat=chat)
    except KeyboardInterrupt as interrupt:
        return (_cancelled if cancels else _left)(client, view, chat_id, interrupt)
    except ClientError as error:
        if not shown.answered:
            raise
        # The answer is final and shown; only the figures under it are missing.
        return FollowedChat(chat_id, answered=True, chat=None, problem=str(error))


@dataclass
class _Shown:
    """What has been shown of a chat so far: the events up to ``after``."""

    client: ApiClient
    view: ChatOutput
    chat_id: str
    to_end: bool
    after: int = 0
    answered: bool = False

    def go_on(self) -> FollowedChat | None:
        """Show the events that follow; None where the chat pauses."""
        for event in self.client.events(self.chat_id, self.after, tell=self.view.notice):
            self.view.show(event)
            self.after, self.answered = event.id, self.answered or event.kind == "answer"
            if event.kind == "paused":
                return None
            if event.kind == "done":
                return _done(self.chat_id, event)
            if event.kind == "error":
                return _failed(self.client, self.chat_id, event)
            if event.kind == "answer" and not self.to_end:
                return _at_answer(self.client, self.view, self.chat_id)
        raise AssertionError("the events of a chat end with a terminal one")


def _at_answer(client: ApiClient, view: ChatOutput, chat_id: str) -> FollowedChat:
    """The credits are settled with the answer, and the tokens of its turns are counted (CONTRACT 8)."""
    chat = client.chat(chat_id)
    _show_end(view, chat)
    return FollowedChat(chat_id, answered=True, chat=chat)


def _show_end(view: ChatOutput, chat: answers.Chat) -> None:
    view.show(ChatEvent(0, "done", chat))


def _done(chat_id: str, event: ChatEvent) -> FollowedChat:
    # `at` is the event's, the rest is the chat object as GET gives it.
    chat = freeze({name: value for name, value in event.data.items() if name != "at"})
    if chat["status"] == "cancelled":
        return FollowedChat(chat_id, answered=False, chat=chat, problem="The chat was cancelled.")
    return FollowedChat(chat_id, answered=True, chat=chat)


def _failed(client: ApiClient, chat_id: str, event: ChatEvent) -> FollowedChat:
    problem = one_line(f"The chat failed: {event.data.get('message')} ({event.data.get('code')})", 600)
    try:
        ended = client.chat(chat_id)
    except ClientError:
        ended = None
    return FollowedChat(chat_id, answered=False, chat=ended, problem=problem)


def _cancelled(
    client: ApiClient, view: ChatOutput, chat_id: str, interrupt: KeyboardInterrupt
) -> FollowedChat:
    """Show what arrived, the id and the charge; or the answer, if it came first."""
    view.notice("Stopping the chat …")
    try:
        chat = client.cancel(chat_id)
    except ClientError as error:
        view.show(ChatEvent(0, LEFT, freeze({})))
        problem = f"The chat could not be stopped: {error} Try: uv run dualtrack cancel {chat_id}"
        return FollowedChat(chat_id, answered=False, chat=None, problem=problem, interrupted=interrupt)
    _show_end(view, chat)
    return FollowedChat(chat_id, answered=False, chat=chat, interrupted=interrupt)


def _left(_client: ApiClient, view: ChatOutput, chat_id: str, interrupt: KeyboardInterrupt) -> FollowedChat:
    view.show(ChatEvent(0, LEFT, freeze({})))
    view.notice(f"The chat continues. Stop it with: uv run dualtrack cancel {one_line(chat_id, 100)}")
    return FollowedChat(chat_id, answered=False, chat=None, interrupted=interrupt)
