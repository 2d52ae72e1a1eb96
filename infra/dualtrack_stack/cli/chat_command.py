"""``dualtrack chat``: one question, or an interactive conversation if MESSAGE is left out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from dualtrack.message_files import MESSAGE_CHARACTERS, UPLOADED_BYTES

from dualtrack_stack.cli.command import (
    Exit,
    exit_codes,
    json_option,
    print_json,
    report,
    stack_options,
    verbose_option,
)
from dualtrack_stack.cli.conversation_commands import latest
from dualtrack_stack.cli.explain_commands import told_to_its_operator
from dualtrack_stack.cli.files import STDIN, BadFile, piped_text, read_files, read_schema
from dualtrack_stack.cli.id_types import CONVERSATION, QUERY
from dualtrack_stack.cli.log_commands import where_tools_failed
from dualtrack_stack.cli.pause_commands import how_to_go_on
from dualtrack_stack.cli.piped import Unfinished, piped
from dualtrack_stack.cli.target import command_line, open_target
from dualtrack_stack.cli.transcript import is_cut, one_line
from dualtrack_stack.cli.watch_commands import exit_of

if TYPE_CHECKING:
    from dualtrack_stack.cli.client import AcceptedChat, ApiClient
    from dualtrack_stack.cli.files import LocalFile
    from dualtrack_stack.cli.talk import FollowedChat, OutgoingMessage
    from dualtrack_stack.cli.target import ChosenStack, TargetOptions


@click.command()
@click.argument("message", required=False)
@click.option("--conversation", metavar="ID", callback=CONVERSATION, help="Continue a conversation.")
@click.option("--last", is_flag=True, help="Continue the latest conversation.")
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="In place of MESSAGE: an answer that was cut off at its limit of length goes on; without --conversation the "
    "latest one.",
)
@click.option(
    "--fork",
    metavar="ID",
    callback=CONVERSATION,
    help="Ask in a new conversation that shares the past of this one.",
)
@click.option(
    "--before",
    metavar="QUERY",
    callback=QUERY,
    help="With --fork: the first query that it does not share, such as q7.",
)
@click.option("--profile", metavar="NAME", help="The agent to talk to, in a new conversation.")
@click.option(
    "--file",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Attach an image, a PDF or a text file; up to five, 50 MB in total. - is standard input.",
)
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A JSON Schema that the answer has to fit: only its JSON is written to stdout.",
)
@stack_options
@json_option
@verbose_option
def chat(
    stack: TargetOptions,
    message: str | None,
    conversation: str | None,
    last: bool,
    goes_on: bool,
    fork: str | None,
    before: str | None,
    profile: str | None,
    paths: tuple[Path, ...],
    schema_path: Path | None,
    as_json: bool,
    in_full: bool,
) -> None:
    """Ask MESSAGE and follow the chat until its answer.

    Piped text goes along, behind MESSAGE or, if it is long, as the file stdin.txt. A MESSAGE of "-" is read from
    stdin. Without MESSAGE, on a terminal: an interactive conversation; /help
    lists its commands.
    To replace or repeat q7 in a new conversation: --fork ID --before q7. The conversation ID stays unchanged.
    With --json the command also waits until the chat is done.

    \b
    Exit codes: 0 answered, 2 usage, 3 not enough credits, 4 failed,
    5 cannot reach the stack, 6 it waits for decisions, 7 the answer does not fit
    the schema, 130 interrupted (the chat is cancelled).
    """
    interactive = message is None and not goes_on
    if interactive and (as_json or schema_path or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise click.UsageError('MESSAGE is missing. Without one, chat needs a terminal; "-" reads stdin.')
    _check_target(conversation, last, fork, before, profile)
    if goes_on and (message is not None or fork or profile or paths or schema_path):
        raise click.UsageError(
            "--continue takes no MESSAGE, and none of --fork, --profile, --file and --schema."
        )
    schema = _schema(schema_path)
    text, files = _content(message, paths)
    from dualtrack_stack.cli.talk import OutgoingMessage  # noqa: PLC0415 - slow to load, not needed for --help

    with exit_codes():
        with open_target(stack, report) as target, target.client() as client:
            continued = latest(client) if last or (goes_on and not conversation) else conversation
            question = OutgoingMessage(text, continued, fork, before, profile, files, schema, goes_on)
            if interactive:
                from dualtrack_stack.cli.interactive import converse  # noqa: PLC0415 - loads the line editor

                converse(stack, target, client, question, in_full=in_full)
                return
            started, outcome = _ask(client, target, question, as_json=as_json, in_full=in_full)
        code = _conclude(started, outcome, stack, question, as_json=as_json, in_full=in_full)
        if outcome.interrupted:
            raise outcome.interrupted
    sys.exit(code)


def _check_text(text: str) -> None:
    if not text.strip():
        raise click.UsageError("MESSAGE is empty.")
    if len(text) > MESSAGE_CHARACTERS:
        raise click.UsageError(
            f"MESSAGE has {len(text):,} characters; at most {MESSAGE_CHARACTERS:,} are allowed. "
            "Send long text as a file: --file PATH."
        )


def _check_target(
    conversation: str | None, last: bool, fork: str | None, before: str | None, profile: str | None
) -> None:
    if (fork is None) != (before is None):
        raise click.UsageError("--fork and --before must be used together.")
    if fork is not None and (conversation is not None or last or profile is not None):
        raise click.UsageError("--fork cannot be combined with --conversation, --last or --profile.")
    if conversation is not None and last:
        raise click.UsageError("--conversation and --last cannot be combined.")


def _content(message: str | None, paths: tuple[Path, ...]) -> tuple[str, tuple[LocalFile, ...]]:
    """The text of the question, empty if it is not given, and the files."""
    files = _files(paths)
    if message is None:
        return "", files
    if message == "-" and STDIN in paths:
        raise click.UsageError("Standard input is either MESSAGE or a file, not both.")
    text = sys.stdin.read() if message == "-" else message
    _check_text(text)
    return (text, files) if message == "-" or STDIN in paths else _with_piped(text, files, paths)


def _with_piped(
    text: str, files: tuple[LocalFile, ...], paths: tuple[Path, ...]
) -> tuple[str, tuple[LocalFile, ...]]:
    """What is piped goes behind the message, as far as the memory keeps that word for word, else as a file."""
    from dualtrack.memory.summaries import LONG_QUERY  # noqa: PLC0415 - not needed for --help

    try:
        with exit_codes():
            data = piped(UPLOADED_BYTES, report)
        if not data.strip():
            return text, files
        whole = f"{text}\n\n{piped_text(data).rstrip()}"
    except (BadFile, Unfinished) as problem:
        raise click.UsageError(str(problem)) from problem
    return (whole, files) if len(whole) <= LONG_QUERY else (text, _files(paths, data))


def _files(paths: tuple[Path, ...], data: bytes = b"") -> tuple[LocalFile, ...]:
    try:
        return read_files(paths, data)
    except BadFile as problem:
        raise click.UsageError(str(problem)) from problem


def _schema(path: Path | None) -> dict[str, Any] | None:
    try:
        return read_schema(path) if path else None
    except BadFile as problem:
        raise click.UsageError(str(problem)) from problem


def _ask(
    client: ApiClient, target: ChosenStack, question: OutgoingMessage, *, as_json: bool, in_full: bool
) -> tuple[AcceptedChat, FollowedChat]:
    from dualtrack_stack.cli.asking import Asking, is_terminal  # noqa: PLC0415 - slow to load, as rich
    from dualtrack_stack.cli.progress import OutputReader, view_on  # noqa: PLC0415
    from dualtrack_stack.cli.talk import OFFLINE, ask, follow, nobody  # noqa: PLC0415

    aside = as_json or question.schema is not None
    stream = sys.stderr if aside else sys.stdout
    with view_on(stream, OutputReader(target.user, target.grants, in_full), progress_only=aside) as view:
        if target.mode == "offline":
            view.notice(OFFLINE)
        started = ask(client, view, question)
        decide = Asking(client, view) if not aside and is_terminal() else nobody
        outcome = follow(client, view, started.chat_id, to_end=as_json, decide=decide)
    return started, told_to_its_operator(target, outcome)


def _conclude(
    started: AcceptedChat,
    outcome: FollowedChat,
    stack: TargetOptions,
    question: OutgoingMessage,
    *,
    as_json: bool,
    in_full: bool,
) -> Exit:
    chat, has_schema = outcome.chat, question.schema is not None
    fits = chat is not None and (chat["output"] is not None or chat["response"] == "null")
    if as_json and chat is not None:
        print_json(chat)
    elif has_schema and chat is not None and fits:
        print_json(chat["output"])
    if outcome.answered and not as_json and not has_schema:
        _tell_how_to_go_on(started, stack, in_full=in_full, is_cut=chat is not None and is_cut(chat))
    if outcome.problem:
        click.echo(f"Error: {outcome.problem}", err=True)
    for line in where_tools_failed(stack, chat):
        click.echo(line, err=True)
    if outcome.is_paused and outcome.chat:
        click.echo(how_to_go_on(stack, outcome.chat), err=True)
    if outcome.answered and (as_json or has_schema) and chat is None:
        return Exit.UNREACHABLE
    if outcome.answered and has_schema and not fits:
        click.echo("Error: the answer does not fit the schema. --json has its text.", err=True)
        return Exit.INVALID_OUTPUT
    return exit_of(outcome)


def _tell_how_to_go_on(started: AcceptedChat, stack: TargetOptions, *, in_full: bool, is_cut: bool) -> None:
    if is_cut:
        on = command_line(stack, "chat", "--conversation", started.conversation_id, "--continue")
        click.echo(f"The answer goes on with: {on}")
    if not in_full:
        click.echo(f'Continue with: {command_line(stack, "chat", "--last")} "…"')
        return
    own, query = started.conversation_id, started.message_id
    click.echo(f'\nContinue with: {command_line(stack, "chat", "--conversation", own)} "…"')
    anew = command_line(stack, "chat", "--fork", own, "--before", query)
    click.echo(f'Ask {one_line(query, 20)} again: {anew} "…"')
