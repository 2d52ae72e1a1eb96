"""The parameters of the API's routes (CONTRACT 4): their descriptions and parsers.

The function ``stream`` uses this module for its header, so it imports nothing heavy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from dualtrack.credits.spending import MAX_DAYS
from dualtrack.errors import invalid_request, not_found
from dualtrack.plugin import id_forms
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.vocabulary import Track

T = TypeVar("T")

MAX_WAIT_SECONDS: Final = 25.0
MAX_SEARCHED: Final = 200
"""Maximum length of a search of conversations."""

_LIMIT: Final = re.compile(r"\d{1,3}", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)

PATH_PARAMETERS: Final = {
    "chat_id": "The chat",
    "conversation_id": "The conversation",
    "record_id": "The record's id in the conversation",
    "place": "The number of the file in the record, from 1",
    "corpus": "`courses` or `graph`",
    "job_id": "The job",
    "document_id": "The document, as the corpus lists it",
    "user_id": "The user: the `sub` of their token",
    "key_id": "The API key",
    "tool": "The tool's name",
    "server": "The MCP server",
    "name": "The name of an end user, as the header X-Dualtrack-User has it",
}
"""The core's path parameters; all but names are ids (`dualtrack.ids.FORMS`)."""


def check_ids(path: Mapping[str, str]) -> None:
    """Raise 404 if a path parameter does not have the form of its ids: then there is nothing of that id."""
    forms = id_forms()
    for name, text in path.items():
        if name in forms and not forms[name].fits(text):
            raise not_found(f"There is no such {forms[name].what}.")


@dataclass(frozen=True, slots=True, eq=False)
class QueryParameter(Generic[T]):
    """An optional parameter; ``read`` parses the text (None if it was not sent), or raises 400."""

    name: str
    location: Literal["query", "header"]
    description: str
    schema: Mapping[str, Any]
    read: Callable[[str | None], T]


def _wait(text: str | None) -> float:
    try:
        seconds = float(text or "0")
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise invalid_request("wait must be a number of seconds from 0 to 25.")
    return seconds


def _limit(text: str | None) -> int:
    text = text or "50"
    if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= 100:
        raise invalid_request("limit must be a whole number from 1 to 100.")
    return int(text)


def _days(text: str | None) -> int:
    text = text or "30"
    if not _LIMIT.fullmatch(text) or not 1 <= int(text) <= MAX_DAYS:
        raise invalid_request(f"days must be a whole number from 1 to {MAX_DAYS}.")
    return int(text)


def _offset(text: str | None) -> int:
    text = text or "0"
    if not _WHOLE.fullmatch(text):
        raise invalid_request("offset must be a whole number of at least 0.")
    return int(text)


def _track(text: str | None) -> Track:
    text = text or "full"
    if text not in ("full", "summarised"):
        raise invalid_request("track must be full or summarised.")
    return cast("Track", text)


def _key(text: str | None) -> str | None:
    if text is not None and (not 1 <= len(text) <= 255 or clean(text) != text):
        raise invalid_request("Idempotency-Key must have 1 to 255 characters.")
    return text


def _event_id(text: str | None) -> int:
    if text and not _WHOLE.fullmatch(text):
        raise invalid_request("Last-Event-ID must be the id of an event.")
    return int(text or 0)


def _searched(text: str | None) -> str:
    if text and len(text) > MAX_SEARCHED:
        raise invalid_request(f"q must have at most {MAX_SEARCHED} characters.")
    return text or ""


def _cancel(text: str | None) -> bool:
    if text not in (None, "", "false", "true"):
        raise invalid_request("cancel must be true or false.")
    return text == "true"


WAIT: Final = QueryParameter(
    "wait",
    "query",
    "Seconds to wait for the answer; returns at once while three other requests of the user are waiting",
    {"type": "number", "minimum": 0, "maximum": 25},
    _wait,
)
CURSOR: Final = QueryParameter(
    "cursor",
    "query",
    "The `cursor` of the previous page",
    {"type": "string", "pattern": "^[A-Za-z0-9_-]*$"},
    lambda text: text or "",
)
LIMIT: Final = QueryParameter(
    "limit", "query", "Entries in a page", {"type": "integer", "minimum": 1, "maximum": 100}, _limit
)
CANCEL: Final = QueryParameter(
    "cancel",
    "query",
    "`true`: also cancel the chats that run under the key",
    {"type": "boolean"},
    _cancel,
)
DAYS: Final = QueryParameter(
    "days",
    "query",
    "Number of days (UTC) up to today; 30 if left out",
    {"type": "integer", "minimum": 1, "maximum": MAX_DAYS},
    _days,
)
OFFSET: Final = QueryParameter(
    "offset",
    "query",
    "Where to begin: a character of a text (the `next_offset` of the previous piece), or a byte of a file",
    {"type": "integer", "minimum": 0, "maximum": 999_999_999},
    _offset,
)
TRACK: Final = QueryParameter(
    "track", "query", "The track; full if left out", {"enum": ["full", "summarised"]}, _track
)
IDEMPOTENCY_KEY: Final = QueryParameter(
    "Idempotency-Key",
    "header",
    "The same key with the same request returns the first request's chat or conversation, for 24 hours",
    {"type": "string", "minLength": 1, "maxLength": 255},
    _key,
)
SEARCHED: Final = QueryParameter(
    "q",
    "query",
    "Only conversations with all of these words in questions, answers and summaries (whole words), the title or the"
    " first 100 characters of any of the latest 20 queries (there also parts of words); a page may then be empty and"
    " still have a cursor",
    {"type": "string", "maxLength": MAX_SEARCHED},
    _searched,
)
FORKED_FROM: Final = QueryParameter(
    "forked_from",
    "query",
    "Only forks of this conversation, which may be deleted",
    {"type": "string", "minLength": 1},
    lambda text: text,
)
LAST_EVENT_ID: Final = QueryParameter(
    "Last-Event-ID",
    "header",
    "The id of the last event seen",
    {"type": "string", "pattern": "^[0-9]{0,9}$"},
    _event_id,
)
