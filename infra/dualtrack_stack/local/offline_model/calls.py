"""Which tools a question calls: those that it names, the record that it points back to, else what the documents' and
the page's samples show. By words, never by understanding.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import samples
from .prose import overlap, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .transcript import PastRecord, Transcript

FULL_CONTEXT = "retrieve_full_context"

_RECORD_ID = re.compile(r"\bq\d+-(?:r|[atf]\d+)\b")
_EARLIER = re.compile(
    r"\b(?:earlier|previous(?:ly)?|again|full (?:code|answer|text|result|record|documentation))\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{3,128}")
_JSON = re.compile(r"[ \t\n`:(]*+\{")
_PAIR = re.compile(r'\s+(\w+)=("(?:[^"\\]|\\.)*"[,;]?|[^\s"]\S*)')


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call and its input."""

    tool: str
    input: Mapping[str, Any]


def pick(seen: Transcript, offered: Mapping[str, Mapping[str, Any]]) -> tuple[Call, ...]:
    """The calls for this turn; none to answer. ``offered`` maps tools' names to their input schemas; no tool is called
    in two turns of a question."""
    called = {outcome.tool for outcome in seen.outcomes}
    wanted = tuple(_named(seen.question, offered)) or tuple(_read_back(seen, offered))
    if not wanted:
        wanted = tuple(Call(*call) for call in samples.calls(seen, offered))
    return tuple(call for call in wanted if call.tool not in called)


def _named(question: str, offered: Mapping[str, Mapping[str, Any]]) -> Iterator[Call]:
    """Tools written out in the message, with the input that follows the name: a JSON object, or ``key=value …``.

    A name alone is a call if it is the whole message or no English word, and the tool requires no input.
    """
    place = 0
    while match := _NAME.search(question, place):
        name, place = match[0], match.end()
        if name not in offered:
            continue
        schema = offered[name]
        arguments, place = _written(question, place, schema.get("properties") or {})
        is_alone = (name == question or "_" in name or "-" in name) and not schema.get("required")
        if arguments is not None or is_alone:
            yield Call(name, arguments or {})


def _written(question: str, place: int, properties: Mapping[str, Any]) -> tuple[dict[str, Any] | None, int]:
    """The input that begins here, as far as ``city="New York" days=2`` names parameters of the tool, and its end."""
    if json_at := _JSON.match(question, place):
        with contextlib.suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(question, json_at.end() - 1)
    found: dict[str, Any] = {}
    while (pair := _PAIR.match(question, place)) and pair[1] in properties:
        found[pair[1]] = samples.typed(pair[2].rstrip(",;"), properties[pair[1]])
        place = pair.end()
    return found or None, place


def _read_back(seen: Transcript, offered: Mapping[str, Any]) -> Iterator[Call]:
    record = wanted_record(seen)
    if record is not None and FULL_CONTEXT in offered:
        yield Call(FULL_CONTEXT, {"id": record.ref})


def wanted_record(seen: Transcript) -> PastRecord | None:
    """The record that is named by its id, the file that is named, or the one meant by "the full code from earlier"."""
    if named := _RECORD_ID.search(seen.question):
        return next((record for record in seen.past if record.ref == named[0]), None)
    lowered = seen.question.lower()
    files = [
        record for record in seen.past if record.is_file and record.text and record.text.lower() in lowered
    ]
    if files and not seen.files:
        return files[-1]
    if not _EARLIER.search(seen.question):
        return None
    wanted = frozenset(words(seen.question))
    shortened = [record for record in seen.past if not (record.whole or record.is_file)]
    responses = [record for record in shortened if record.ref.endswith("-r")] or shortened
    # of equals the latest
    return max(
        reversed(responses),
        key=lambda record: overlap(wanted, f"{record.question}\n{record.text}"),
        default=None,
    )
