"""``dualtrack aws smoke``: checks the contract at a stack's address, with a user made for it."""

from __future__ import annotations

import contextlib
import secrets
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from dualtrack.api.key_format import is_key
from dualtrack.settings import of_commands

from dualtrack_stack.cli.aws.account import AwsAccount, AwsRefusal
from dualtrack_stack.cli.aws.checks import Probe, Wrong, run_checks
from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.aws.smoke_report import markdown, measures, picture, write
from dualtrack_stack.cli.aws.up import new_password
from dualtrack_stack.cli.client import CommandFailed
from dualtrack_stack.cli.command import Exit, colour, exit_codes, json_option, print_json
from dualtrack_stack.cli.target import Missing, dev_token
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.cli.aws.checks import CheckResult

NAME: Final = "smoke-"
"""The prefix of its users' names."""
LEFT_BEHIND: Final = timedelta(hours=1)
"""An older user belongs to a run that was killed."""


@contextlib.contextmanager
def _user(url: str | None, token: str | None, stage: str, region: str | None) -> Iterator[tuple[str, str]]:
    """(address, ID token) for the block; a user created for it is deleted at its end."""
    if url and token:
        yield url, token
    elif url:
        name = f"{NAME}{secrets.token_hex(6)}"
        issued = dev_token(url, name).token
        try:
            yield url, issued
        finally:
            _erase(url, issued)
    else:
        with _deployed_user(AwsAccount(region), stage, token) as user:
            yield user


@contextlib.contextmanager
def _deployed_user(account: AwsAccount, stage: str, token: str | None) -> Iterator[tuple[str, str]]:
    stacks = account.stacks(stage)
    if "chat" not in stacks or "identity" not in stacks:
        raise Missing(f"Stage {stage} is not deployed here: uv run dualtrack aws up --stage {stage}")
    outputs = {**stacks["identity"].outputs, **stacks["chat"].outputs}
    page = stacks["page"].outputs.get("PageUrl") if "page" in stacks else None
    url = (page or outputs["ApiUrl"]).rstrip("/")
    if token:
        yield url, token
        return
    pool, client = outputs["UserPoolId"], outputs["UserPoolClientId"]
    account.delete_old_users(pool, NAME, datetime.now(UTC) - LEFT_BEHIND)
    name, password = f"{NAME}{secrets.token_hex(6)}", new_password()
    try:
        account.create_user(pool, name, "", password)
        account.set_password(pool, name, password, permanent=True)
        id_token = _sign_in(account, pool, client, name, password)
        try:
            yield url, id_token
        finally:
            _erase(url, id_token)
    finally:
        account.delete_user(pool, name)


def _sign_in(account: AwsAccount, pool: str, client: str, name: str, password: str) -> str:
    try:
        return account.sign_in(pool, client, name, password)
    except AwsRefusal as problem:
        raise Missing(
            f"{problem} A stage without password sign-in (prod) needs a token of somebody who has signed in:"
            " --token or DUALTRACK_TOKEN, or an API key with the scopes chat, read and erase: DUALTRACK_API_KEY."
        ) from problem


def _erase(url: str, token: str) -> None:
    """Erase the user's data in the stack (CONTRACT 4, DELETE /v1/me)."""
    probe = Probe(url, token)
    with contextlib.suppress(Wrong):
        probe.ask("DELETE", "/v1/me")
    probe.close()


@contextlib.contextmanager
def _key(url: str, credential: str) -> Iterator[str]:
    """The checks' own key for the block, made with a token and revoked at its end; a key that was given is used as it
    is, so a pipeline needs no user's token where people alone can sign in."""
    if is_key(credential):
        yield credential
        return
    owner = Probe(url, credential)
    body = {"name": "smoke test", "scopes": ["chat", "read", "erase"], "expires_in": 3_600}
    try:
        made = owner.body(owner.ask("POST", "/v1/keys", json=body), 201)
        try:
            yield str(made["key"])
        finally:
            with contextlib.suppress(Wrong):
                owner.ask("DELETE", f"/v1/keys/{made['key_id']}")
    except Wrong as problem:
        raise CommandFailed(f"The checks could not make their API key: {problem}") from problem
    finally:
        owner.close()


def _tell(result: CheckResult) -> None:
    sign, hue = {"passed": ("✓", "green"), "failed": ("✗", "red")}.get(result.state, ("·", "yellow"))
    line = (
        f"{click.style(sign, fg=hue)} {result.name:<22} {result.seconds:6.2f} s  {one_line(result.seen, 300)}"
    )
    click.echo(line, err=True, color=colour())
    if result.state == "failed":
        click.echo(f"    expected: {result.expected}", err=True)


@click.command()
@stage_option
@region_option
@click.option("--url", help="A stack's address instead of a stage; a local one needs no token.")
@click.option(
    "--token",
    help="ID token or API key; else DUALTRACK_TOKEN, DUALTRACK_API_KEY; else a user is made, and removed afterwards.",
)
@click.option(
    "--report",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the report; else .dualtrack/smoke-<stage>.",
)
@json_option
def smoke(
    stage: str,
    region: str | None,
    url: str | None,
    token: str | None,
    folder: Path | None,
    *,
    as_json: bool,
) -> None:
    """Check the contract against a deployed stack with an API key made for it: two chats, at most one US cent.
    Measures the first chat (cold), the first token, a chat with a tool, and its cost.

    \b
    Exit codes: 0 everything passed, 4 something did not.
    """
    with exit_codes():
        settings = of_commands()
        provided = token or settings.dualtrack_token or settings.dualtrack_api_key or None
        with (
            _user(url.rstrip("/") if url else None, provided, stage, region) as (address, credential),
            _key(address, credential) as key,
        ):
            probe = Probe(address, key)
            try:
                results = run_checks(probe, _tell)
            finally:
                probe.close()
        measured = measures(probe)
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        target = folder or Path(".dualtrack") / f"smoke-{'local' if url else stage}"
        path = write(target, markdown(address, when, results, measured), picture(results))
        _conclude(results, measured, path, as_json=as_json)


def _conclude(
    results: list[CheckResult], measured: list[tuple[str, str]], path: Path, *, as_json: bool
) -> None:
    passed = sum(result.state == "passed" for result in results)
    if as_json:
        listed = [
            {"check": result.name, "state": result.state, "seen": result.seen, "seconds": result.seconds}
            for result in results
        ]
        print_json({"passed": passed, "of": len(results), "checks": listed, "measured": dict(measured)})
    else:
        for what, figure in measured:
            click.echo(f"{what}: {figure}")
        click.echo(f"{passed} of {len(results)} passed; the report: {path}")
    sys.exit(Exit.ANSWERED if passed == len(results) else Exit.FAILED)
