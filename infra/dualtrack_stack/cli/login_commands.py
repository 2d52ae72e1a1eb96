"""``dualtrack login`` and ``logout``: a person signs in to a deployed stage from a terminal."""

from __future__ import annotations

import os
import threading
import webbrowser
from typing import TYPE_CHECKING, Final

import click

from dualtrack_stack.cli import kept_tokens, oauth
from dualtrack_stack.cli.client import CommandFailed
from dualtrack_stack.cli.command import exit_codes, required_url_option
from dualtrack_stack.cli.kept_tokens import Kept
from dualtrack_stack.cli.signed_in_door import open_door
from dualtrack_stack.cli.target import claims_of
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.sign_in_ports import PORTS, address_at

if TYPE_CHECKING:
    from dualtrack_stack.cli.oauth import Provider, Tokens

_SECONDS: Final = 300.0
"""For a person to sign in, second factor included."""


@click.command()
@required_url_option
@click.option("--paste", is_flag=True, help="The browser is on another machine; as over SSH.")
def login(*, url: str, paste: bool) -> None:
    """Sign in to a deployed stage in the browser; other commands with this --url use it.

    Over SSH it prints an address, and takes the one to which the browser was led.
    """
    with exit_codes():
        provider = oauth.provider_at(url)
        remote = paste or bool(os.environ.get("SSH_CONNECTION"))
        tokens = _by_paste(provider) if remote else _by_browser(provider)
        kept_tokens.keep(url, Kept(provider, tokens))
        claims = claims_of(tokens.id_token)
        who = str(claims.get("email") or claims.get("cognito:username") or claims.get("sub") or "")
        click.echo(f"Signed in to {url} as {one_line(who, 200)}.")


@click.command()
@required_url_option
def logout(*, url: str) -> None:
    """End the sign-in of this machine at a stage."""
    with exit_codes():
        found = kept_tokens.kept(url)
        if found is None:
            click.echo(f"Not signed in to {url}.")
            return
        ended = oauth.revoke(found.provider, found.tokens.refresh_token)
        kept_tokens.forget(url)
        click.echo(
            f"Signed out of {url}."
            if ended
            else f"This machine has forgotten the sign-in to {url}; the stage could not be told, so a copy of it holds"
            " for 30 days at most."
        )


def _by_browser(provider: Provider) -> Tokens:
    with open_door() as door:
        if door is None:
            return _by_paste(provider)
        asked = oauth.attempt(provider, door.back)
        click.echo(f"Sign in in the browser. If none opens, open\n\n{asked.address}\n", err=True)
        # one that runs in a terminal ends only after it has come back here
        threading.Thread(target=webbrowser.open, args=[asked.address], daemon=True).start()
        answered = door.wait(asked.is_answered_by, _SECONDS)
    if not answered:
        raise CommandFailed(
            "Nobody signed in within five minutes. Start again; without a browser here, with --paste."
        )
    return asked.tokens(answered)


def _by_paste(provider: Provider) -> Tokens:
    asked = oauth.attempt(provider, address_at(PORTS[0]))
    click.echo(
        f"Open in a browser, wherever it is:\n\n{asked.address}\n\nAfter signing in it finds no page. Copy the address"
        " that it shows then, and paste it here.",
        err=True,
    )
    return asked.tokens(click.prompt("Address", hide_input=True, err=True))
