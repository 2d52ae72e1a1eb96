"""``dualtrack logs``: what the project's tools print, log and fail with, on a local stack and on AWS."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click
from dualtrack.ids import made_at

from dualtrack_stack.cli.aws.options import region_option
from dualtrack_stack.cli.command import exit_codes, report, state_dir_option
from dualtrack_stack.cli.id_types import CHAT
from dualtrack_stack.cli.target import Missing, command_line, need, need_local
from dualtrack_stack.cli.tool_logs import LogEvent, calls_of, masked
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from dualtrack import answers

    from dualtrack_stack.cli.target import TargetOptions
    from dualtrack_stack.cli.tool_logs import LoggedCall

_FUNCTION: Final = "OwnLogs"
"""How the log group of the project's tools is called in the stack's template; the rest is a number."""
_LOOK_SECONDS: Final = 1.0
_MINUTE: Final = 60_000
_LONGEST_CALL: Final = 16 * _MINUTE
"""Lambda's limit of a call is a quarter of an hour."""
_PAGES: Final = 200
_MOST_INDENT: Final = 20
_STAGES: Final = ("staging", "prod")


@click.command("logs")
@click.argument("chat_id", metavar="[CHAT]", required=False, callback=CHAT)
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--minutes",
    type=click.IntRange(1, 60 * 24 * 30),
    help="How far back: 15 minutes, or a chat's own time.",
)
@click.option("--stage", type=click.Choice(_STAGES), help="A stage on AWS, in place of the local stack.")
@region_option
@state_dir_option
def logs(
    *,
    chat_id: str | None,
    follow: bool,
    minutes: int | None,
    stage: str | None,
    region: str | None,
    state_dir: Path,
) -> None:
    """Show what the project's own tools print, log and fail with, of CHAT or of all chats. A traceback has the
    project's lines; secrets whose values this terminal knows are masked.
    """
    with exit_codes():
        client, group = _of_stage(stage, region) if stage else _of_local(state_dir)
        now = int(time.time() * 1000)
        begun = now - (minutes or 15) * _MINUTE
        if chat_id and minutes is None:
            begun = _before(chat_id)
        try:
            for call in read(client, group, begun, _secrets(), following=follow):
                if not chat_id or call.chat == chat_id:
                    for line in shown(call):
                        click.echo(line)
        except KeyboardInterrupt:
            return


def read(
    client: Any, group: str, begun: int, secrets: Mapping[str, str], *, following: bool = False
) -> Iterator[LoggedCall]:
    """The calls since a moment (milliseconds since 1970). ``following``: and those to come, without end, each once it
    has ended; a look goes no further back than a call may take."""
    told: dict[str, int] = {}
    while True:
        for call in calls_of(_events(client, group, begun)):
            is_new = call.request not in told and (call.has_ended or not following)
            if is_new and (call.lines or call.failures):
                if call.request:
                    told[call.request] = call.at
                yield masked(call, secrets)
        if not following:
            return
        time.sleep(_LOOK_SECONDS)
        begun = max(begun, int(time.time() * 1000) - _LONGEST_CALL)
        told = {request: at for request, at in told.items() if at >= begun - _LONGEST_CALL}


def where_tools_failed(stack: TargetOptions, chat: answers.Chat | None) -> Iterator[str]:
    """Lines for the one who builds: where the project's tools raised what failed in a chat on the local stack. A log
    that cannot be read has none."""
    if chat is None or stack.url is not None or not any(call["is_error"] for call in chat["tool_calls"]):
        return
    chat_id = chat["chat_id"]
    try:
        client, group = _of_local(stack.state_dir)
        listed = list(read(client, group, _before(chat_id), _secrets()))
    except Exception:  # noqa: BLE001 - a look that helps must not become the command's failure
        return
    failures = [failure for call in listed if call.chat == chat_id for failure in call.failures]
    for failure in failures:
        yield f"{failure.place or 'a tool'}: {one_line(failure.what, 300)}"
    if failures:
        yield f"Prints and tracebacks: {command_line(stack, 'logs', chat_id)}"


def shown(call: LoggedCall) -> Iterator[str]:
    """A call as lines of a terminal."""
    moment = datetime.fromtimestamp(call.at / 1000, UTC).astimezone().strftime("%H:%M:%S")
    yield f"{moment} {call.chat or 'a call'}"
    for line in (*call.lines, *(line for failure in call.failures for line in failure.lines)):
        indent = min(len(line) - len(line.lstrip(" ")), _MOST_INDENT)
        yield f"  {' ' * indent}{one_line(line, 1_000)}"


def _events(client: Any, group: str, begun: int) -> Iterator[LogEvent]:
    asked: dict[str, Any] = {"logGroupName": group, "startTime": begun}
    for _ in range(_PAGES):
        page = client.filter_log_events(**asked)
        for event in page["events"]:
            yield LogEvent(event["timestamp"], event["logStreamName"], event["message"])
        if not (token := page.get("nextToken")):
            return
        asked["nextToken"] = token
    report("There is more: ask for fewer minutes, or for one chat.")


def _of_local(state_dir: Path) -> tuple[Any, str]:
    need_local()
    from dualtrack_stack.local.shared import account_of, running_stack  # noqa: PLC0415 - extra `local`

    if running_stack(state_dir) is None:
        raise Missing("No local stack runs: `dualtrack dev` or a chat starts it, and its log ends with it.")
    account = account_of(state_dir)
    return account.client("logs"), _group(account.client, "dualtrack-local-chat")


def _of_stage(stage: str, region: str | None) -> tuple[Any, str]:
    need("deploy", "`dualtrack logs --stage`")
    from dualtrack_stack.cli.aws.account import AwsAccount  # noqa: PLC0415 - extra `deploy`
    from dualtrack_stack.cli.aws.facts import prefix  # noqa: PLC0415 - the same

    account = AwsAccount(region)
    return account.client("logs"), _group(account.client, f"{prefix(stage)}-chat")


def _group(client: Callable[[str], Any], stack: str) -> str:
    """The log group of the project's tools."""
    pages = client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    for page in pages:
        for resource in page["StackResourceSummaries"]:
            is_group = resource["ResourceType"] == "AWS::Logs::LogGroup"
            if is_group and resource["LogicalResourceId"].startswith(_FUNCTION):
                return str(resource["PhysicalResourceId"])
    raise Missing(f"The stack {stack} has no function for tools of a project.")


def _secrets() -> dict[str, str]:
    """The values of the project's secrets, as far as this terminal has them."""
    from dualtrack_stack.project.file import read_file  # noqa: PLC0415 - a client alone has not its packages

    named = read_file(project_root()).stages["local"].own.secrets
    return {name: os.environ[name] for name in named if os.environ.get(name)}


def _before(chat_id: str) -> int:
    """A minute before a chat was made, in milliseconds since 1970: clocks differ."""
    return int(made_at(chat_id) * 1_000) - _MINUTE
