"""The sign-ins that this machine keeps, by the stage's address, in a file that its owner alone may read.

A file, as the AWS CLI has one: `login` is for terminals, most of them over SSH or in a container, where no keyring
runs. `logout` ends a sign-in at the provider too, so a copied file is worth nothing then.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from dualtrack_stack.cli.oauth import Provider, Tokens


@dataclass(frozen=True, slots=True)
class Kept:
    """A sign-in of one stage."""

    provider: Provider
    tokens: Tokens


def folder() -> Path:
    """That of this user's settings."""
    return Path(click.get_app_dir("dualtrack"))


def kept(url: str) -> Kept | None:
    """The sign-in for a stage; None without one."""
    entry = _all().get(url)
    try:
        return Kept(Provider(**entry["provider"]), Tokens(**entry["tokens"])) if entry else None
    except (KeyError, TypeError):  # written by another release
        return None


def keep(url: str, sign_in: Kept) -> None:
    """Keep the sign-in, in place of an earlier one."""
    _write({**_all(), url: asdict(sign_in)})


def forget(url: str) -> None:
    """Keep it no longer."""
    _write({other: entry for other, entry in _all().items() if other != url})


def _file() -> Path:
    return folder() / "sign-ins.json"


def _all() -> dict[str, Any]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(entries: dict[str, Any]) -> None:
    """Whole or not at all: another command may read at the same time."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder())  # 0600 from its first byte on
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(entries, file)
    Path(name).replace(_file())
