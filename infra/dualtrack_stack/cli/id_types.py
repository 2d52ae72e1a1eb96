"""Ids on the command line: checked before a URL is built from them, by the library's own forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from dualtrack.plugin import id_forms

from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ADVICE: Final[Mapping[str, str]] = {
    "conversation_id": " `dualtrack conversations` lists them.",
    "record_id": " `dualtrack show` lists them.",
    "key_id": " `dualtrack keys list` shows them.",
    "query_id": " The first query is q1.",
}


def wrong_id(name: str, text: str) -> str:
    """Why this is no id of that name; empty if it may be one."""
    form = id_forms()[name]
    if form.fits(text):
        return ""
    advice = form.advice or _ADVICE.get(name, "")
    return f"{one_line(text, 60) or 'Nothing'} is not a {form.what} id such as {form.example}.{advice}"


def id_check(name: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """A callback of click, for an argument or option that takes such an id."""

    def check(context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
        if text is not None and (problem := wrong_id(name, text)):
            raise click.UsageError(problem, context)
        return text

    return check


CHAT: Final = id_check("chat_id")
CONVERSATION: Final = id_check("conversation_id")
QUERY: Final = id_check("query_id")
KEY: Final = id_check("key_id")
