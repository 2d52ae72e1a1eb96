"""Ids on the command line: checked before a URL is built from them, by the library's own forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from dualtrack.ids import FORMS, is_id

from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ADVICE: Final[Mapping[str, str]] = {
    "conversation_id": " `dualtrack conversations` lists them.",
    "record_id": " `dualtrack show` lists them.",
    "key_id": " `dualtrack keys list` shows them.",
    "schedule_id": " `dualtrack schedules list` shows them.",
    "webhook_id": " `dualtrack webhooks list` shows them.",
    "query_id": " The first query is q1.",
}


def wrong_id(name: str, text: str) -> str:
    """Why this is no id of that name; empty if it may be one."""
    if is_id(name, text):
        return ""
    form = FORMS[name]
    return f"{one_line(text, 60) or 'Nothing'} is not a {form.what} id such as {form.example}.{_ADVICE.get(name, '')}"


def _check(name: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """A callback of click, for an argument or option that takes such an id."""

    def check(context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
        if text is not None and (problem := wrong_id(name, text)):
            raise click.UsageError(problem, context)
        return text

    return check


CHAT: Final = _check("chat_id")
CONVERSATION: Final = _check("conversation_id")
QUERY: Final = _check("query_id")
KEY: Final = _check("key_id")
SCHEDULE: Final = _check("schedule_id")
WEBHOOK: Final = _check("webhook_id")
