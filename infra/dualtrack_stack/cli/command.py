"""Shared by the commands: options for the stack, exit codes, output."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
from dualtrack.frozen import thaw
from dualtrack.settings import of_commands

from dualtrack_stack.cli.client import CommandFailed, RequestRefused, Unreachable, is_loopback
from dualtrack_stack.cli.target import Missing, TargetOptions, default_state_dir
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


class Exit(IntEnum):
    """Exit codes (CONTRACT 1); 130 and 143 are the shell's own for SIGINT and SIGTERM."""

    ANSWERED = 0
    USAGE = 2
    CREDITS = 3
    FAILED = 4
    UNREACHABLE = 5
    PAUSED = 6
    INVALID_OUTPUT = 7
    INTERRUPTED = 130
    TERMINATED = 143


# Errors caused by the request, not by the caller's identity or a temporary condition.
_WRONG_REQUEST: Final = frozenset({"invalid_request", "not_found", "too_large"})


class Termination(KeyboardInterrupt):
    """SIGTERM, unwound like Ctrl-C."""


state_dir_option = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_state_dir,
    show_default=".dualtrack of the project, wherever in it you are",
    help="Folder of the local stack; its state survives there.",
)
verbose_option = click.option(
    "-v", "--verbose", "in_full", is_flag=True, help="Every figure, ids, and how to go on from here."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")


_url_option = click.option(
    "--url",
    callback=lambda _context, _option, value: _checked_url(value),
    help="A stack's address; else the local one, started if needed.",
)
required_url_option = click.option(
    "--url",
    required=True,
    callback=lambda _context, _option, value: (_checked_url(value) or "").rstrip("/"),
    help="The stage's address: that of its page.",
)
_token_option = click.option(
    "--token",
    help="ID token or API key; else DUALTRACK_TOKEN, DUALTRACK_API_KEY, `dualtrack login`. Local stacks need none.",
)


def stack_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--url``, ``--token`` and ``--state-dir``, given to the command as one `TargetOptions` named ``stack``."""

    @functools.wraps(command)
    def gather(url: str | None, token: str | None, state_dir: Path, **rest: Any) -> Any:
        try:
            settings = of_commands()
        except ValueError as wrong:
            raise click.UsageError(f"This is no value of the setting {wrong}") from wrong
        in_environment = settings.dualtrack_token or settings.dualtrack_api_key or None
        return command(stack=TargetOptions(url, token or None, in_environment, state_dir), **rest)

    return _url_option(_token_option(state_dir_option(gather)))


def _checked_url(value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise click.BadParameter("must begin with http:// or https://.")
    return value


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turns errors inside the block into one line on stderr and the contract's exit code."""
    with _terminable():
        try:
            yield
        except Termination:
            sys.exit(Exit.TERMINATED)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            sys.exit(Exit.INTERRUPTED)
        except Missing as error:
            _fail(str(error), Exit.USAGE)
        except CommandFailed as error:
            _fail(str(error), Exit.FAILED)
        except RequestRefused as error:
            _fail(refusal(error), _code_of(error))
        except Unreachable as error:
            _fail(f"{error} {_advice(error)}".strip(), Exit.UNREACHABLE)


def refusal(error: RequestRefused) -> str:
    """A refusal on one line, with what the user can do about it."""
    parts = [error.message or error.code]
    if error.code == "insufficient_credits":
        parts.append(f"{error.extra.get('required')} needed, {error.extra.get('available')} available")
        if error.extra.get("resets_at"):
            parts.append(f"more at {moment(error.extra['resets_at'])}")
        upgrade: Any = error.extra.get("upgrade")
        if error.grants:
            parts.append(f"more with: {error.grants}")
        elif hasattr(upgrade, "get") and upgrade.get("message"):
            parts.append(str(upgrade["message"]))
    if error.code == "key_cap_reached":
        resets_at = error.extra.get("resets_at")
        parts.append(f"again from {moment(resets_at)}" if resets_at else "the key's owner can raise it")
    if error.code == "conversation_busy" and error.extra.get("chat_id"):
        parts.append(f"follow it: dualtrack watch {error.extra['chat_id']}")
        parts.append(f"stop it: dualtrack cancel {error.extra['chat_id']}")
    if error.code == "conversation_paused" and error.extra.get("chat_id"):
        parts.append(f"decide: dualtrack decide {error.extra['chat_id']}")
        parts.append(f"stop it: dualtrack cancel {error.extra['chat_id']}")
    if error.extra.get("retry_after"):
        parts.append(f"try again in {error.extra['retry_after']} s")
    text = "; ".join(part.rstrip(".") for part in parts)
    return one_line(f"{text} ({error.code})", 600)


def moment(iso: Any) -> str:
    """``2026-11-22 00:00 UTC`` of an ISO 8601 time in UTC."""
    return f"{str(iso)[:16].replace('T', ' ')} UTC"


def report(text: str) -> None:
    """A step of the local stack's start, on stderr."""
    click.echo(click.style(text, dim=True), err=True, color=colour())


def colour() -> bool | None:
    """What click is told about colours: none if NO_COLOR is set, else as the terminal has them."""
    return False if "NO_COLOR" in os.environ else None


def print_json(value: Any) -> None:
    """Only the value on stdout; ASCII, so no terminal or code page can garble it."""
    click.echo(json.dumps(thaw(value), indent=2))


def _fail(message: str, code: Exit) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)


def _code_of(error: RequestRefused) -> Exit:
    if error.code in ("insufficient_credits", "key_cap_reached"):
        return Exit.CREDITS
    return Exit.USAGE if error.code in _WRONG_REQUEST else Exit.FAILED


def _advice(error: Unreachable) -> str:
    if not error.url:
        return ""
    if is_loopback(error.url):
        return "Start a stack with `uv run dualtrack dev`, or leave out --url."
    return "Check the address and the network."


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, so that a chat is cancelled and no process is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Termination

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
