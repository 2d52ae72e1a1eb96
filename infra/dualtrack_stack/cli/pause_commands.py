"""``dualtrack pauses | decide``: chats that wait for decisions (docs/approvals.md)."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from dualtrack.visible import on_a_line

from dualtrack_stack.cli.client import CommandFailed
from dualtrack_stack.cli.command import (
    Exit,
    exit_codes,
    json_option,
    moment,
    print_json,
    report,
    stack_options,
)
from dualtrack_stack.cli.conversation_commands import age
from dualtrack_stack.cli.id_types import CHAT, wrong_id
from dualtrack_stack.cli.open_calls import KINDS, arguments_in
from dualtrack_stack.cli.target import command_line, open_target
from dualtrack_stack.cli.transcript import describe, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack import answers

    from dualtrack_stack.cli.client import ApiClient
    from dualtrack_stack.cli.target import TargetOptions


@click.command()
@stack_options
@json_option
def pauses(stack: TargetOptions, *, as_json: bool) -> None:
    """Chats that wait for you, each with its open calls."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        answer: answers.Pauses = client.call("GET", "/v1/pauses")
    if as_json:
        print_json(answer)
        return
    for line in _listed(answer, datetime.now(UTC)):
        click.echo(line)
    if answer["pauses"]:
        click.echo(f"Decide: {command_line(stack, 'decide', answer['pauses'][0]['chat_id'])}", err=True)


def _listed(answer: answers.Pauses, now: datetime) -> Iterator[str]:
    if not answer["pauses"]:
        yield "Nothing waits for you."
    for paused in answer["pauses"]:
        since, until = age(paused["paused_at"], now), moment(paused["expires_at"])
        yield f"{one_line(paused['chat_id'], 40)}  {since}, until {until}"
        yield from (f"  {call_line(call)}" for call in paused["calls"])


def call_line(call: answers.OpenCall) -> str:
    """An open call on one line of the terminal."""
    columns = shutil.get_terminal_size().columns - 2 if sys.stdout.isatty() else 200
    destroys = "destroys: " if call.get("effect") == "destroys" else ""
    begin = f"{call['id']}  {destroys}{call['tool']}"
    return on_a_line(f"{begin} {describe(call['input'], length=len(begin) + columns)}", max(30, columns))


def how_to_go_on(stack: TargetOptions, chat: answers.Chat) -> str:
    """What a paused chat waits for, and the command that decides."""
    pause = chat.get("pause")
    calls = "".join(f"\n  {call_line(call)}" for call in (pause["calls"] if pause else ()))
    until = f" by {moment(pause['expires_at'])}" if pause else ""
    return f"It waits for a decision{until}:{calls}\nDecide: {command_line(stack, 'decide', chat['chat_id'])}"


@click.command()
@click.argument("chat_id", metavar="CHAT", callback=CHAT)
@click.argument("calls", metavar="[CALL]...", nargs=-1)
@click.option("--approve", is_flag=True, help="The call may run.")
@click.option(
    "--for-conversation", is_flag=True, help="With --approve: its tool needs no approval here again."
)
@click.option("--decline", is_flag=True, help="It may not.")
@click.option("--reason", help="With --decline: why not, for the model.")
@click.option("--input", "edited", metavar="JSON", help="It may run with these arguments instead.")
@click.option("--result", help="What a tool of the client has returned.")
@click.option("--is-error", is_flag=True, help="With --result: it failed.")
@click.option("--answer", help="The answer to the model's question.")
@stack_options
@json_option
def decide(
    stack: TargetOptions,
    *,
    chat_id: str,
    calls: Sequence[str],
    approve: bool,
    for_conversation: bool,
    decline: bool,
    reason: str | None,
    edited: str | None,
    result: str | None,
    is_error: bool,
    answer: str | None,
    as_json: bool,
) -> None:
    """Decide on calls of CHAT, which waits: on each CALL, such as q1-t1, or on all open ones that the decision suits.

    Without a decision, on a terminal: ask for each.
    """
    for call in calls:
        if problem := wrong_id("record_id", call):
            raise click.UsageError(problem)
    wanted = {"approve": approve, "decline": decline, "input": edited, "result": result, "answer": answer}
    says = [name for name, value in wanted.items() if value not in (None, False)]
    decision = _decision(says, wanted, for_conversation, reason, is_error=is_error)
    with exit_codes():
        with open_target(stack, report) as target, target.client() as client:
            if decision is None:
                chat = _ask(client, chat_id, as_json=as_json)
            else:
                chosen = calls or _open(client, chat_id, says[0])
                chat = client.decide(chat_id, [{"id": call, **decision} for call in chosen])
        if as_json:
            print_json(chat)
        elif chat["status"] == "paused":
            click.echo(how_to_go_on(stack, chat))
        else:
            click.echo(f"{chat_id} goes on. Follow it: {command_line(stack, 'watch', chat_id)}")
    sys.exit(Exit.PAUSED if decision is None and chat["status"] == "paused" else Exit.ANSWERED)


def _decision(
    says: Sequence[str], wanted: dict[str, Any], lasts: bool, reason: str | None, *, is_error: bool
) -> dict[str, Any] | None:
    """The decision's fields; None if none is given. Raises `click.UsageError`."""
    belongs = ((lasts, "--for-conversation", "approve"), (reason, "--reason", "decline"), (is_error, "--is-error", "result"))  # fmt: skip
    for is_given, option, to in belongs:
        if is_given and says != [to]:
            raise click.UsageError(f"{option} belongs to --{to}.")
    if len(says) > 1:
        raise click.UsageError(f"Only one of {' and '.join(f'--{one}' for one in says)}.")
    if not says:
        return None
    (one,) = says
    if one == "approve":
        return {"approve": True, **({"for": "conversation"} if lasts else {})}
    if one == "decline":
        return {"approve": False, **({"reason": reason} if reason else {})}
    if one == "input" and (arguments := arguments_in(wanted["input"])) is not None:
        return {"input": arguments}
    if one == "input":
        raise click.UsageError("--input takes a JSON object.")
    return {one: wanted[one], **({"is_error": True} if is_error else {})}


def _open(client: ApiClient, chat_id: str, says: str) -> list[str]:
    """The open calls that such a decision suits; of an input, a result or an answer there must be one. Raises
    `CommandFailed` and `click.UsageError`."""
    chat = client.chat(chat_id)
    pause = chat.get("pause")
    if pause is None:
        raise CommandFailed(f"{chat_id} waits for no decision: it is {chat['status']}.")
    suits = [call for call in pause["calls"] if call["kind"] in KINDS and says in KINDS[call["kind"]].says]
    if not suits:
        raise CommandFailed(f"No open call of {chat_id} takes --{says}.")
    if len(suits) > 1 and says not in ("approve", "decline"):
        raise click.UsageError(f"Which call? {', '.join(one_line(call['id'], 20) for call in suits)}")
    return [call["id"] for call in suits]


def _ask(client: ApiClient, chat_id: str, *, as_json: bool) -> answers.Chat:
    from dualtrack_stack.cli.asking import Asking, is_terminal  # noqa: PLC0415 - loads the line editor
    from dualtrack_stack.cli.progress import view_on  # noqa: PLC0415 - loads rich

    if as_json or not is_terminal():
        raise click.UsageError("Which decision? --approve, --decline, --input, --result or --answer.")
    chat = client.chat(chat_id)
    if chat["status"] != "paused":
        raise CommandFailed(f"{chat_id} waits for no decision: it is {chat['status']}.")
    Asking(client, view_on(sys.stdout))(chat)
    return client.chat(chat_id)
