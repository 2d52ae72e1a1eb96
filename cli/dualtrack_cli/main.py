"""``dualtrack chat | dev | credits``: the commands of CONTRACT 1."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack.frozen import freeze

from dualtrack_cli.aws_commands import aws_commands
from dualtrack_cli.aws_prune import prune
from dualtrack_cli.client import ClientError, Refused
from dualtrack_cli.command import (
    STATE_DIR,
    Exit,
    exit_codes,
    json_option,
    print_json,
    report,
    stack_options,
    state_dir_option,
)
from dualtrack_cli.course_commands import course_commands
from dualtrack_cli.credit_commands import credit_commands
from dualtrack_cli.explain_commands import explain
from dualtrack_cli.files import BadFile, read_files
from dualtrack_cli.graph_commands import graph_commands
from dualtrack_cli.target import need_checkout, open_target
from dualtrack_cli.transcript import one_line
from dualtrack_cli.user_commands import user_commands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack_cli.client import ApiClient, ChatEvent, Started
    from dualtrack_cli.files import LocalFile
    from dualtrack_cli.progress import View
    from dualtrack_cli.target import Wanted

_OFFLINE: Final = (
    "The offline model answers. It is no language model: it picks tools by keywords and quotes what they "
    "return. Set ANTHROPIC_API_KEY and start anew for Claude."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dualtrack")
def main() -> None:
    """An agent backend that meters, remembers and shows every step, here or in your AWS account."""


main.add_command(credit_commands)
main.add_command(user_commands)
main.add_command(course_commands)
main.add_command(graph_commands)
main.add_command(aws_commands)
aws_commands.add_command(prune)
main.add_command(explain)


@main.command()
@click.argument("message")
@click.option("--conversation", metavar="ID", help="Go on with a conversation.")
@click.option("--fork", metavar="ID", help="Ask in a new conversation that shares the past of this one.")
@click.option(
    "--before", metavar="QUERY", help="With --fork: the first query that it does not share, such as q7."
)
@click.option("--profile", metavar="NAME", help="The agent to talk to, in a new conversation.")
@click.option(
    "--file",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Send an image, a PDF or a text file along; up to five, 4 MB together.",
)
@stack_options
@json_option
def chat(
    stack: Wanted,
    message: str,
    conversation: str | None,
    fork: str | None,
    before: str | None,
    profile: str | None,
    paths: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Ask MESSAGE and watch the chat until its end.

    A MESSAGE of "-" is read from stdin. To ask something else at q7, or the same once more:
    --fork ID --before q7. The conversation ID stays as it is.

    \b
    Exit codes: 0 answered, 2 usage, 3 not enough credits, 4 failed,
    5 cannot reach the stack, 130 interrupted (the chat is cancelled).
    """
    text = sys.stdin.read() if message == "-" else message
    if not text.strip():
        raise click.UsageError("MESSAGE is empty.")
    if (fork is None) != (before is None):
        raise click.UsageError("--fork and --before go together.")
    if fork is not None and (conversation is not None or profile is not None):
        raise click.UsageError("A fork has its own conversation and profile: leave out the option for it.")
    files = _files(paths)
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        from dualtrack_cli.progress import view_on  # noqa: PLC0415 - rich loads while nobody waits for --help

        with view_on(sys.stderr if as_json else sys.stdout, progress_only=as_json) as view:
            if target.mode == "offline":
                view.notice(_OFFLINE)
            if fork is not None and before is not None:
                started = _start_in_fork(client, view, fork, before, text, files)
            else:
                started = client.start_chat(text, conversation, profile, files)
            outcome = _converse(client, view, started)
        code = _conclude(outcome, stack, as_json=as_json)
    sys.exit(code)


def _start_in_fork(
    client: ApiClient, view: View, parent: str, before: str, text: str, files: tuple[LocalFile, ...]
) -> Started:
    """A fork and its first chat; a fork whose chat is refused was made for nothing, and goes."""
    fork = client.fork(parent, before)
    try:
        started = client.start_chat(text, fork, files=files)
    except Refused as refusal:
        if refusal.status < 500:  # else the chat may run all the same
            with contextlib.suppress(ClientError):
                client.delete_conversation(fork)
        raise
    view.notice(f"Forked before {one_line(before, 20)}: {one_line(fork, 100)}")
    return started


def _files(paths: tuple[Path, ...]) -> tuple[LocalFile, ...]:
    try:
        return read_files(paths)
    except BadFile as problem:
        raise click.UsageError(str(problem)) from problem


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a chat ended. ``chat`` is the chat object, None if it could not be had."""

    started: Started
    answered: bool
    chat: Mapping[str, Any] | None
    problem: str = ""


def _converse(client: ApiClient, view: View, started: Started) -> Outcome:
    answered = False
    try:
        for event in client.events(started.chat_id, tell=view.notice):
            view.show(event)
            answered = answered or event.kind == "answer"
            if event.kind == "done":
                return _done(started, event)
            if event.kind == "error":
                return _failed(client, started, event)
    except KeyboardInterrupt:
        _cancel(client, started, view)
        raise
    except ClientError as error:
        if not answered:
            raise
        # The answer is final and shown; only the figures under it are missing.
        return Outcome(started, answered=True, chat=None, problem=str(error))
    raise AssertionError("the events of a chat end with a terminal one")


def _done(started: Started, event: ChatEvent) -> Outcome:
    # `at` is the event's, the rest is the chat object as GET gives it.
    chat = freeze({name: value for name, value in event.data.items() if name != "at"})
    if chat["status"] == "cancelled":
        return Outcome(started, answered=False, chat=chat, problem="The chat was cancelled.")
    return Outcome(started, answered=True, chat=chat)


def _failed(client: ApiClient, started: Started, event: ChatEvent) -> Outcome:
    problem = one_line(f"The chat failed: {event.data.get('message')} ({event.data.get('code')})", 600)
    try:
        ended = client.chat(started.chat_id)
    except ClientError:
        ended = None
    return Outcome(started, answered=False, chat=ended, problem=problem)


def _cancel(client: ApiClient, started: Started, view: View) -> None:
    view.notice("Cancelling the chat …")
    try:
        client.cancel(started.chat_id)
    except ClientError as error:
        view.notice(f"It could not be cancelled: {error}")


def _conclude(outcome: Outcome, stack: Wanted, *, as_json: bool) -> Exit:
    if as_json and outcome.chat is not None:
        print_json(outcome.chat)
    if outcome.answered and not as_json:
        own, query = outcome.started.conversation_id, outcome.started.message_id
        click.echo(f'\nGo on with: {_command(stack, "--conversation", own)} "…"')
        click.echo(f'Ask {one_line(query, 20)} anew: {_command(stack, "--fork", own, "--before", query)} "…"')
    if outcome.problem:
        click.echo(f"Error: {outcome.problem}", err=True)
    if outcome.answered and as_json and outcome.chat is None:
        return Exit.UNREACHABLE
    return Exit.ANSWERED if outcome.answered else Exit.FAILED


def _command(stack: Wanted, *options: str) -> str:
    parts = ["uv", "run", "dualtrack", "chat", *(one_line(one, 100) for one in options)]
    if stack.url is not None:
        parts += ["--url", stack.url]
    elif stack.state_dir != STATE_DIR:
        parts += ["--state-dir", str(stack.state_dir)]
    return shlex.join(parts)


@main.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@state_dir_option
@click.option("--reset", is_flag=True, help="Begin with an empty state.")
def dev(port: int, state_dir: Path, reset: bool) -> None:
    """Run the local stack until Ctrl-C: API, events and web page on one port."""
    with exit_codes():
        need_checkout()
    from infra.local.stack import serve  # noqa: PLC0415 - an installed wheel has none

    sys.exit(serve(state_dir, port=port, reset=reset, report=report))


if __name__ == "__main__":
    main()
