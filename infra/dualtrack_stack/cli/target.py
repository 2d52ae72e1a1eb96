"""The stack and the user of a command.

``--url`` names a stack. Without it the running local stack of the state folder is used, else one is started
for the duration of the command; its data stays in the state folder.
"""

from __future__ import annotations

import base64
import shlex
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.extras import how_to_install, is_installed
from dualtrack.frozen import loads

from dualtrack_stack.cli import kept_tokens, oauth
from dualtrack_stack.cli.client import (
    ApiClient,
    CommandFailed,
    Missing,
    RequestRefused,
    Unreachable,
    is_loopback,
)
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from dualtrack.extras import Extra

    Report = Callable[[str], None]

OPERATOR: Final = "operator"
"""The local stack's user with the rights of an administrator."""

_HOW: Final = "`dualtrack login --url {url}`; or give --token, or set DUALTRACK_TOKEN or DUALTRACK_API_KEY"
_SOON: Final = 60.0
"""Seconds: a token that expires sooner is renewed before it is used."""
_SOME_CREDITS: Final = 500
"""Used in the suggested command when credits are short."""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The command line's options for the stack; ``env_token`` is the environment's DUALTRACK_TOKEN, or
    DUALTRACK_API_KEY."""

    url: str | None
    token: str | None
    env_token: str | None
    state_dir: Path


@dataclass(frozen=True, slots=True)
class ChosenStack:
    """A running stack, and an ID token or API key for it. ``dev``: the token is from the stack itself, which also
    issues others (local stacks only). ``mode``: ``offline`` or ``live``, empty for a stack that is not local.
    ``grants``: the command that gives this user more credits, empty if only an operator may.
    """

    url: str
    token: str
    dev: bool
    mode: str = ""
    grants: str = ""

    @property
    def user(self) -> str:
        """The user's name in their token; empty if there is none."""
        claims = claims_of(self.token)
        names = (claims.get(claim) for claim in ("cognito:username", "email", "sub"))
        return str(next(filter(None, names), ""))

    def client(self) -> ApiClient:
        """A client with this identity."""
        return ApiClient(self.url, self.token)


@contextmanager
def open_target(wanted: TargetOptions, report: Report) -> Iterator[ChosenStack]:
    """The stack to use in the block. ``report`` is called with each slow step.

    Raises `Unreachable` if a local one cannot start.
    """
    with ExitStack() as held:
        url = _enter_local(held, wanted.state_dir, report) if wanted.url is None else wanted.url.rstrip("/")
        env_token = None if wanted.url is None else wanted.env_token
        signed_in = wanted.url is not None and not (wanted.token or env_token)
        target = _identified(url, wanted.token or env_token or (_signed_in(url) if signed_in else ""))
        if target.dev:
            target = replace(target, grants=command_line(wanted, "credits", "grant", str(_SOME_CREDITS)))
        try:
            yield target
        except RequestRefused as refused:
            refused.grants = target.grants
            raise


def _enter_local(held: ExitStack, state_dir: Path, report: Report) -> str:
    need_local()
    from dualtrack_stack.local.shared import shared_stack  # noqa: PLC0415 - extra `local`

    try:
        return held.enter_context(shared_stack(state_dir, report))
    except RuntimeError as error:  # CannotStart, DeployFailed, ChildDied: the last two are slow to import
        raise Unreachable(f"The local stack cannot start. {error}") from error


def need(extra: Extra, what: str) -> None:
    """Raise `Missing` if the packages that a command needs are not installed."""
    if not is_installed(extra):
        raise Missing(f"{what} needs the extra `{extra}`: {how_to_install(extra)}.")


def need_local() -> None:
    """Raise `Missing` where no local stack can start."""
    need("local", "The local stack (a command without --url)")


def default_state_dir() -> Path:
    """``.dualtrack`` in the project, wherever in it a command is called."""
    return project_root() / ".dualtrack"


@dataclass(frozen=True, slots=True)
class DevUser:
    """A user of a local stack with an ID token; ``created`` if the stack has just created them."""

    token: str
    user_id: str
    created: bool


def dev_token(url: str, user: str | None = None, *, admin: bool = False) -> DevUser:
    """A user of a local stack, created if the name is new; without a name the stack's default user."""
    params = {**({} if user is None else {"user": user}), **({"admin": "1"} if admin else {})}
    with ApiClient(url) as client:
        answer = client.call("GET", "/dev/token", params=params)
    return DevUser(str(answer["token"]), str(answer["user_id"]), bool(answer.get("created")))


def claims_of(token: str) -> Mapping[str, Any]:
    """The claims of an ID token, unverified: for display only."""
    try:
        payload = token.split(".")[1]
        claims: Any = loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError):
        return {}
    return claims if hasattr(claims, "get") else {}


def command_line(stack: TargetOptions, *words: str) -> str:
    """``uv run dualtrack …`` for the same stack, ready to be pasted."""
    parts = ["uv", "run", "dualtrack", *(one_line(word, 100) for word in words)]
    if stack.url is not None:
        parts += ["--url", stack.url]
    elif stack.state_dir != default_state_dir():
        parts += ["--state-dir", str(stack.state_dir)]
    return shlex.join(parts)


def _identified(url: str, token: str | None) -> ChosenStack:
    if not is_loopback(url):
        if not token:
            raise Missing(f"{url} needs an ID token or an API key: {_HOW.format(url=url)}.")
        return ChosenStack(url, token, dev=False)
    mode = _mode(url)
    if token:
        return ChosenStack(url, token, dev=False, mode=mode)
    try:
        return ChosenStack(url, dev_token(url).token, dev=True, mode=mode)
    except RequestRefused as error:
        raise Missing(f"{url} does not issue tokens: {_HOW.format(url=url)}.") from error


def _signed_in(url: str) -> str:
    """The ID token of a sign-in by `dualtrack login`, renewed if it is about to expire; empty without one. Raises
    `Missing` if it has ended."""
    found = kept_tokens.kept(url)
    if found is None:
        return ""
    if float(claims_of(found.tokens.id_token).get("exp", 0)) > time.time() + _SOON:
        return found.tokens.id_token
    try:
        tokens = oauth.renewed(found.provider, found.tokens.refresh_token)
    except CommandFailed:
        raise Missing(
            f"The sign-in to {url} has ended. Sign in again: `dualtrack login --url {url}`."
        ) from None
    kept_tokens.keep(url, replace(found, tokens=tokens))
    return tokens.id_token


def _mode(url: str) -> str:
    """``offline`` or ``live``; nothing for a stack that is not local, for instance behind a tunnel."""
    try:
        with ApiClient(url) as client:
            status: Any = client.call("GET", "/dev/status")
    except RequestRefused:
        return ""
    return str(status["mode"]) if hasattr(status, "get") and status.get("mode") else ""
