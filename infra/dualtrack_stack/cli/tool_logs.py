"""What tools have written: the log of their function as calls, a failure with the project's own lines first. Pure.

A log has events in the order of its streams. On AWS a call begins and ends with lines of the platform in JSON, and
what ``logging`` writes is JSON (Lambda's JSON log format); what ``print`` writes is text. The emulator has the text
forms of all of it, and an event for each line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_PLATFORM: Final = re.compile(r"(START|END|REPORT) RequestId: (\S+)")
_TRACEBACK: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<name>.+)')
_CODE: Final = re.compile(r"(?:.*/code|/var/task)/(?P<file>.+)")
"""Where a function's own files are: in the emulator, and on AWS."""
_OTHERS: Final = re.compile(r"(?:^|/)(?:site-packages|dist-packages|_vendor)/|^handler\.py$")
_CHAT: Final = re.compile(r"\bch_[0-9a-v]{26}\b")
_MASK: Final = "•••"


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event: milliseconds since 1970, its stream, its text."""

    at: int
    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception: where the project's own code raised it, ``tools/desk.py:10``, or empty; ``what`` it is; the lines
    of its traceback, in which what is not the project's is folded."""

    place: str
    what: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call of a function: when it began, its chat where a line names it, its lines, and what it failed with.
    ``request``: its id, which no other call has; ``has_ended``: whether its end is there."""

    at: int
    request: str = ""
    has_ended: bool = False
    chat: str = ""
    lines: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


def calls_of(events: Iterable[LogEvent]) -> tuple[LoggedCall, ...]:
    """The calls in the order of their beginning. A call whose end is not there yet counts with what it has."""
    by_stream: dict[str, list[LogEvent]] = {}
    for event in events:
        by_stream.setdefault(event.stream, []).append(event)
    found = [call for listed in by_stream.values() for call in _calls_of_stream(listed)]
    return tuple(sorted(found, key=lambda call: call.at))


def masked(call: LoggedCall, secrets: Mapping[str, str]) -> LoggedCall:
    """The call without the values of secrets."""
    values = sorted((value for value in secrets.values() if len(value) > 3), key=len, reverse=True)

    def mask(text: str) -> str:
        for value in values:
            text = text.replace(value, _MASK)
        return text

    failures = tuple(
        Failure(failure.place, mask(failure.what), tuple(map(mask, failure.lines)))
        for failure in call.failures
    )
    return replace(call, lines=tuple(map(mask, call.lines)), failures=failures)


def _calls_of_stream(events: Sequence[LogEvent]) -> Iterator[LoggedCall]:
    call, texts = LoggedCall(0), []
    for event in events:
        mark, request = _platform(event.text)
        if mark == "start":
            if texts:
                yield _told(call, texts)
            call, texts = LoggedCall(event.at, request), []
        elif mark == "end":
            yield _told(replace(call, at=call.at or event.at, request=request, has_ended=True), texts)
            call, texts = LoggedCall(0), []
        elif mark != "other":
            call = replace(call, at=call.at or event.at)
            texts += _said(event.text)
    if texts:
        yield _told(call, texts)


def _platform(text: str) -> tuple[str, str]:
    """``start``, ``end`` or ``other`` for a line of the platform, else empty; and the request's id."""
    if match := _PLATFORM.match(text):
        return {"START": "start", "END": "end"}.get(match[1], "other"), match[2]
    entry = _object(text)
    kind, record = str(entry.get("type", "")), entry.get("record")
    if not kind.startswith("platform."):
        return "", ""
    request = str(record.get("requestId", "")) if isinstance(record, dict) else ""
    return {"platform.start": "start", "platform.report": "end"}.get(kind, "other"), request


def _said(text: str) -> list[str]:
    """The lines of an event; of one in JSON its message, and the traceback that it has."""
    entry = _object(text)
    if "message" not in entry and "errorMessage" not in entry:
        return text.rstrip("\n").replace("\r", "\n").split("\n")
    level, logger = str(entry.get("level", "")), str(entry.get("logger", ""))
    head = " ".join(part for part in (level, logger, str(entry.get("message", ""))) if part)
    chat = str(entry.get("correlation_id", ""))
    lines = [f"{head} ({chat})" if _CHAT.fullmatch(chat) and chat not in head else head]
    if trace := entry.get("exception"):
        return [*lines, *str(trace).split("\n")]
    if frames := entry.get("stackTrace"):
        told = f"{entry.get('errorType', 'Exception')}: {entry.get('errorMessage', '')}"
        listed = [line for frame in frames for line in str(frame).rstrip("\n").split("\n")]
        return [*lines, _TRACEBACK, *listed, told]
    return lines


def _told(call: LoggedCall, texts: Sequence[str]) -> LoggedCall:
    """The call with its lines."""
    lines: list[str] = []
    failures: list[Failure] = []
    rest = iter(texts)
    for line in rest:
        if line.strip() != _TRACEBACK:
            lines.append(line)
            continue
        trace, what = [], ""
        for deeper in rest:
            if deeper[:1] not in (" ", "\t", ""):
                what = deeper
                break
            trace.append(deeper)
        failures.append(_failure(trace, what))
    chat = next((match[0] for line in lines if (match := _CHAT.search(line))), "")
    return replace(call, chat=chat, lines=tuple(lines), failures=tuple(failures))


def _failure(trace: Sequence[str], what: str) -> Failure:
    """A traceback: a frame is a line with its file and the lines below it, those that are not the project's folded."""
    shown: list[str] = []
    place, folded, is_own = "", 0, False
    for line in trace:
        frame = _FRAME.match(line)
        if frame:
            file = _own_file(frame["path"])
            is_own = bool(file)
            if is_own:
                shown += [f"  … {folded} frames that are not the project's"] if folded else []
                place, folded = f"{file}:{frame['line']}", 0
                shown.append(f"  {place} in {frame['name']}")
            else:
                folded += 1
        elif is_own and set(line.strip()) - {"^", "~"}:
            shown.append(f"      {line.strip()}")
    shown += [f"  … {folded} frames that are not the project's"] if folded else []
    return Failure(place, what, (*shown, what))


def _own_file(path: str) -> str:
    """A file of the project, as it is called there; empty for one of a library."""
    match = _CODE.fullmatch(path)
    file = match["file"] if match else ""
    return "" if _OTHERS.search(file) else file


def _object(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
