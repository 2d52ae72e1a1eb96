"""Ids on the command line: checked before a URL is built from them, by the library's own forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack.ids import FORMS, is_id

from dualtrack_cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADVICE: Final[Mapping[str, str]] = {
    "conversation_id": " `dualtrack conversations` lists them.",
    "record_id": " `dualtrack show` lists them.",
    "query_id": " The first query is q1.",
}


def wrong_id(name: str, text: str) -> str:
    """Why this is no id of that name; empty if it may be one."""
    if is_id(name, text):
        return ""
    form = FORMS[name]
    return f"{one_line(text, 60) or 'Nothing'} is not a {form.what} id such as {form.example}.{_ADVICE.get(name, '')}"


class IdType(click.ParamType):
    """An argument or option that takes an id."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002 - click's form
        ctx: click.Context | None,
    ) -> str:
        """The id; any other text is wrong usage."""
        if problem := wrong_id(self.name, value):
            raise click.UsageError(problem, ctx)
        return str(value)


CHAT: Final = IdType("chat_id")
CONVERSATION: Final = IdType("conversation_id")
QUERY: Final = IdType("query_id")
