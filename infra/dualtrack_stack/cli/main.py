"""``dualtrack``: the commands of CONTRACT 1, each in a module of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from dualtrack import __version__, plugin

from dualtrack_stack.cli.aws_commands import aws_commands
from dualtrack_stack.cli.chat_command import chat
from dualtrack_stack.cli.check_command import check
from dualtrack_stack.cli.client import CommandFailed
from dualtrack_stack.cli.command import exit_codes, report, state_dir_option
from dualtrack_stack.cli.conversation_commands import conversations, show
from dualtrack_stack.cli.course_commands import course_commands
from dualtrack_stack.cli.credit_commands import credit_commands
from dualtrack_stack.cli.eval_commands import eval_commands
from dualtrack_stack.cli.explain_commands import explain
from dualtrack_stack.cli.graph_commands import graph_commands
from dualtrack_stack.cli.key_commands import key_commands
from dualtrack_stack.cli.log_commands import logs
from dualtrack_stack.cli.login_commands import login, logout
from dualtrack_stack.cli.new_command import new
from dualtrack_stack.cli.pause_commands import decide, pauses
from dualtrack_stack.cli.price_command import prices
from dualtrack_stack.cli.replay_command import replay
from dualtrack_stack.cli.target import need_local
from dualtrack_stack.cli.tool_commands import tools
from dualtrack_stack.cli.user_commands import user_commands
from dualtrack_stack.cli.watch_commands import cancel, watch

if TYPE_CHECKING:
    from pathlib import Path


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """An agent backend that meters, stores and shows every step, locally or in your AWS account."""


main.add_command(new)
main.add_command(chat)
main.add_command(login)
main.add_command(logout)
main.add_command(conversations)
main.add_command(show)
main.add_command(watch)
main.add_command(cancel)
main.add_command(pauses)
main.add_command(decide)
main.add_command(tools)
main.add_command(check)
main.add_command(eval_commands)
main.add_command(replay)
main.add_command(prices)
main.add_command(credit_commands)
main.add_command(key_commands)
main.add_command(user_commands)
main.add_command(course_commands)
main.add_command(graph_commands)
main.add_command(aws_commands)
main.add_command(explain)
main.add_command(logs)
for module in plugin.parts("commands"):
    main.add_command(module.commands)


@main.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 chooses a free port."
)
@state_dir_option
@click.option("--reset", is_flag=True, help="Start with an empty state.")
def dev(port: int, state_dir: Path, reset: bool) -> None:
    """Run the local stack until Ctrl-C: API, events and web page on one port."""
    with exit_codes():
        need_local()
    from dualtrack_stack.local.runner import serve  # noqa: PLC0415 - extra `local`

    sys.exit(serve(state_dir, port=port, reset=reset, report=report))


@main.command()
@state_dir_option
def stop(state_dir: Path) -> None:
    """End the local stack that commands have left running; its data stays."""
    with exit_codes():
        need_local()
        from dualtrack_stack.local.shared import CannotStop, stop_stack  # noqa: PLC0415 - extra `local`

        try:
            ended = stop_stack(state_dir, report)
        except CannotStop as problem:
            raise CommandFailed(str(problem)) from problem
    click.echo("The local stack has ended." if ended else "No local stack runs.")


if __name__ == "__main__":
    main()
