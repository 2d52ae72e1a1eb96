"""``dualtrack watch | cancel``: follow a running chat, or stop it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dualtrack_stack.cli.client import ChatEvent, RequestRefused
from dualtrack_stack.cli.command import (
    Exit,
    exit_codes,
    json_option,
    print_json,
    report,
    stack_options,
    verbose_option,
)
from dualtrack_stack.cli.conversation_commands import latest_chat
from dualtrack_stack.cli.explain_commands import told_to_its_operator
from dualtrack_stack.cli.id_types import CHAT
from dualtrack_stack.cli.pause_commands import how_to_go_on
from dualtrack_stack.cli.target import open_target
from dualtrack_stack.cli.transcript import clean, one_line

if TYPE_CHECKING:
    from dualtrack import answers

    from dualtrack_stack.cli.client import ApiClient
    from dualtrack_stack.cli.progress import ChatOutput
    from dualtrack_stack.cli.talk import Decide, FollowedChat
    from dualtrack_stack.cli.target import TargetOptions


@click.command()
@click.argument("chat_id", metavar="[CHAT]", required=False, callback=CHAT)
@stack_options
@json_option
@verbose_option
def watch(stack: TargetOptions, chat_id: str | None, *, as_json: bool, in_full: bool) -> None:
    """Follow CHAT, or the latest one, from its beginning until its answer, wherever it was started.

    Ctrl-C leaves the chat running. With --json: wait until the chat is done, then print only the chat object.

    \b
    Exit codes: as those of chat.
    """
    with exit_codes():
        with open_target(stack, report) as target, target.client() as client:
            from dualtrack_stack.cli.asking import Asking, is_terminal  # noqa: PLC0415 - loads the line editor
            from dualtrack_stack.cli.progress import OutputReader, view_on  # noqa: PLC0415 - loads rich
            from dualtrack_stack.cli.talk import nobody  # noqa: PLC0415

            chat_id = chat_id or latest_chat(client)
            stream = sys.stderr if as_json else sys.stdout
            reader = OutputReader(target.user, target.grants, in_full)
            with view_on(stream, reader, progress_only=as_json) as view:
                decide = Asking(client, view) if not as_json and is_terminal() else nobody
                outcome = _follow(client, view, chat_id, decide, as_json=as_json)
            outcome = told_to_its_operator(target, outcome)
        if as_json and outcome.chat is not None:
            print_json(outcome.chat)
        if outcome.problem:
            click.echo(f"Error: {outcome.problem}", err=True)
        if outcome.is_paused and outcome.chat:
            click.echo(how_to_go_on(stack, outcome.chat), err=True)
        if outcome.interrupted:
            raise outcome.interrupted
    sys.exit(exit_of(outcome))


def exit_of(outcome: FollowedChat) -> Exit:
    """The exit code of a chat that was followed."""
    if outcome.is_paused:
        return Exit.PAUSED
    return Exit.ANSWERED if outcome.answered else Exit.FAILED


def _follow(
    client: ApiClient, view: ChatOutput, chat_id: str, decide: Decide, *, as_json: bool
) -> FollowedChat:
    """Shows its events, or its final state once they have expired: they are kept for 24 hours (CONTRACT 5)."""
    from dualtrack_stack.cli.talk import FollowedChat, follow  # noqa: PLC0415

    try:
        return follow(client, view, chat_id, to_end=as_json, cancels=False, decide=decide)
    except RequestRefused as refused:
        if refused.code != "not_found":
            raise
        chat = client.chat(chat_id)
        view.show(ChatEvent(0, "done", chat))
        return FollowedChat(chat_id, chat["status"] in ("answered", "done"), chat)


@click.command()
@click.argument("chat_id", metavar="[CHAT]", required=False, callback=CHAT)
@stack_options
@json_option
def cancel(stack: TargetOptions, chat_id: str | None, *, as_json: bool) -> None:
    """Stop CHAT, or the latest one, and print its text so far and its charge. A chat that has ended stays unchanged."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        chat = client.cancel(chat_id or latest_chat(client))
    if as_json:
        print_json(chat)
        return
    for line in cancel_lines(chat):
        click.echo(line)


def cancel_lines(chat: answers.Chat) -> tuple[str, ...]:
    """What is left of a chat that was to be stopped."""
    own = one_line(chat["chat_id"], 100)
    charge = f"{chat['credits_used']:,} credits charged, {chat['credits_remaining']:,} left"
    if chat["status"] != "cancelled":
        return (f"{own} had already ended ({chat['status']}): {charge}.",)
    text = clean(chat.get("response") or "").strip("\n")
    return (*((text, "") if text else ()), f"{own} is stopped: {charge}.")
