"""A conversation as it was recorded: the API's answer, or a file that has it (``dualtrack show … --json``)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import thaw
from dualtrack.ids import parse_record_id

from dualtrack_stack.evals.checks import MadeCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

MAX_BYTES: Final = 200_000_000


class BadExport(ValueError):
    """A file is no conversation, or has no query that could be asked again."""


@dataclass(frozen=True, slots=True)
class PastCall(MadeCall):
    """With its ``id`` (``q1-t1``), and what became of it."""

    id: str = ""
    tool_use_id: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A model call that called tools: what it ``said`` before, and the calls."""

    said: str
    calls: tuple[PastCall, ...]


@dataclass(frozen=True, slots=True)
class PastQuery:
    """``stop`` is empty if there is no answer; ``files``: the names of those that came with it, which are not sent
    again."""

    number: int
    ask: str
    turns: tuple[PastTurn, ...]
    answer: str
    stop: str
    chat_id: str
    files: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[PastCall, ...]:
        """All of its calls."""
        return tuple(call for turn in self.turns for call in turn.calls)


@dataclass(frozen=True, slots=True)
class PastConversation:
    """Its queries in order."""

    id: str
    profile: str
    queries: tuple[PastQuery, ...]


def from_file(path: Path) -> PastConversation:
    """Raises `BadExport`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadExport(f"{path} is larger than {MAX_BYTES:,} bytes.")
        written = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        if isinstance(problem, BadExport):
            raise
        raise BadExport(f"{path} is no JSON: write one with `dualtrack show ID --json`.") from None
    return past_of(written)


def past_of(shown: Any) -> PastConversation:
    """That of the API's object, on the full track. Raises `BadExport`."""
    try:
        written = thaw(shown)
        if written.get("track") != "full":
            raise BadExport("This is not the full track: write it with `dualtrack show ID --json`.")
        queries = tuple(_queries(written["records"]))
        found = PastConversation(str(written["conversation_id"]), str(written["profile"]), queries)
    except (KeyError, TypeError, AttributeError) as problem:
        raise BadExport("This is no conversation: write one with `dualtrack show ID --json`.") from problem
    if not queries:
        raise BadExport("Nothing was asked in this conversation.")
    return found


def _queries(records: Sequence[Mapping[str, Any]]) -> Iterator[PastQuery]:
    by_query: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        if parsed := parse_record_id(record["record_id"]):
            by_query.setdefault(parsed.query, []).append(record)
    for number, own in sorted(by_query.items()):
        asked = next((record for record in own if record["record_id"] == f"q{number}"), None)
        answer: Mapping[str, Any] = next(
            (record for record in own if record["record_id"] == f"q{number}-r"), {}
        )
        if asked and not asked.get("continues"):
            text = answer.get("content", "")[answer.get("thinking_characters", 0) :]
            yield PastQuery(
                number,
                asked["content"],
                tuple(_turns(own)),
                text,
                answer.get("stop") or "",
                asked.get("chat_id", ""),
                tuple(str(file.get("name", "")) for file in asked.get("attachments", ())),
            )


def _turns(own: Sequence[Mapping[str, Any]]) -> Iterator[PastTurn]:
    """By the number of the model call."""
    said: dict[int, str] = {}
    calls: dict[int, list[PastCall]] = {}
    for record in own:
        parsed = parse_record_id(record["record_id"])
        if parsed and parsed.kind == "thought":
            said[_turn_of(record, own)] = record.get("content", "")[record.get("thinking_characters", 0) :]
        elif parsed and parsed.kind == "tool":
            calls.setdefault(record["turn"], []).append(
                PastCall(
                    record["tool"],
                    record["input"],
                    record.get("result", ""),
                    bool(record.get("is_error")),
                    record["record_id"],
                    record.get("tool_use_id", ""),
                    record.get("status", ""),
                )
            )
    for turn, made in sorted(calls.items()):
        yield PastTurn(said.get(turn, ""), tuple(made))


def _turn_of(thought: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> int:
    """The model call in which it was written: thoughts are counted for themselves, and stored before their calls."""
    at = thought.get("created_at", "")
    return min(
        (record["turn"] for record in own if "turn" in record and record.get("created_at", "") >= at),
        default=0,
    )
