"""Which stack a command talks to, and as whom.

``--url`` names a stack. Without it the local stack of the state folder is used if it runs, else one is
started for the length of the command; what it stored stays in the state folder.
"""

from __future__ import annotations

import getpass
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dualtrack_cli.client import ApiClient, ClientError, Refused, Unreachable, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Report = Callable[[str], None]


class Missing(ClientError):
    """A token, the checkout that a local stack is made from, or the account that was asked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says about the stack; ``env_token`` is the environment's DUALTRACK_TOKEN."""

    url: str | None
    token: str | None
    env_token: str | None
    state_dir: Path


@dataclass(frozen=True, slots=True)
class Target:
    """A stack that serves and an ID token for it.

    ``dev``: the token came from the stack itself, which hands out others too (local stacks only).
    ``mode``: ``offline`` or ``live``, empty for a stack that is not local.
    """

    url: str
    token: str
    dev: bool
    mode: str = ""

    def client(self) -> ApiClient:
        """A client with this identity."""
        return ApiClient(self.url, self.token)


@contextmanager
def open_target(wanted: Wanted, report: Report) -> Iterator[Target]:
    """The stack to talk to, for the length of the block. ``report`` is told what takes time.

    Raises `Unreachable` if a local one cannot start.
    """
    if wanted.url is not None:
        yield _identified(wanted.url.rstrip("/"), wanted.token or wanted.env_token)
        return
    with ExitStack() as held:
        yield _identified(_enter_local(held, wanted.state_dir, report), wanted.token)


def _enter_local(held: ExitStack, state_dir: Path, report: Report) -> str:
    need_checkout()
    from infra.local.shared import shared_stack  # noqa: PLC0415 - an installed wheel has none

    try:
        return held.enter_context(shared_stack(state_dir, report))
    except RuntimeError as error:  # CannotStart, DeployFailed, ChildDied: the last two load much to name
        raise Unreachable(f"The local stack cannot start. {error}") from error


def need_checkout() -> None:
    """Raise `Missing` in an installed wheel: the local stack is deployed from the sources."""
    if find_spec("infra") is None:
        raise Missing(
            "The local stack needs a checkout of the repository: run `uv run dualtrack` there, or give --url."
        )


def dev_token(url: str, user: str, *, admin: bool = False) -> tuple[str, str]:
    """(ID token, user id) of a user of a local stack; the user is made if there is none of that name."""
    params = {"user": user, **({"admin": "1"} if admin else {})}
    with ApiClient(url) as client:
        answer = client.call("GET", "/dev/token", params=params)
    return str(answer["token"]), str(answer["user_id"])


def login_name() -> str:
    """Who sits at this machine, as a user name for the local stack."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name for this uid
        return "me"


def _identified(url: str, token: str | None) -> Target:
    if not is_loopback(url):
        if not token:
            raise Missing(f"{url} needs an ID token: give --token or set DUALTRACK_TOKEN.")
        return Target(url, token, dev=False)
    mode = _mode(url)
    if token:
        return Target(url, token, dev=False, mode=mode)
    try:
        return Target(url, dev_token(url, login_name())[0], dev=True, mode=mode)
    except Refused as error:
        raise Missing(f"{url} hands out no tokens: give --token or set DUALTRACK_TOKEN.") from error


def _mode(url: str) -> str:
    """``offline`` or ``live``; nothing for a stack that is not local, for instance behind a tunnel."""
    try:
        with ApiClient(url) as client:
            status: Any = client.call("GET", "/dev/status")
    except Refused:
        return ""
    return str(status["mode"]) if hasattr(status, "get") and status.get("mode") else ""
