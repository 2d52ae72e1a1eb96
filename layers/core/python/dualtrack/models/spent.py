"""Data of model calls beside their tokens, for a chat's receipt (CONTRACT 9). Pure.

    turn        `Made`       stored with the turn: when it was asked, how long it took, how often it was tried
    tool call   `Asked`    the tool's own calls, to a model and for embeddings
    chat        `Lost`       calls of a turn that were begun and never recorded
                `Side`       calls for the summaries of its query, and for a digest
                ledger       the numbers of its lines in its user's ledger

All of it is written in the transaction that records what it belongs to, so it cannot be recorded twice. Items of
earlier releases do not have it.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.models.turn import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.events import StoredEvent

MAX_LOST: Final = 50
"""Maximum number for a turn: the workflow retries a turn a few times, and the sweep ends a chat that never ends."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A call that was begun ``at`` (ISO 8601) and never recorded: its step died, was overtaken, or the chat ended.

    ``written``: the characters of text that it had streamed.
    """

    turn: int
    at: str
    written: int


@dataclass(frozen=True, slots=True)
class Made:
    """Data of a recorded turn's call; times in seconds. ``tries``: all requests to the model's service, including
    refused, ``lost`` and interrupted ones; ``calls``: how many of them are in the turn's usage."""

    at: str
    seconds: float
    first_seconds: float | None = None
    calls: int = 1
    tries: int = 1
    lost: tuple[Lost, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """Calls outside the turns: ``calls`` answers after ``tries`` requests, and their total usage."""

    at: str
    model: str
    seconds: float
    calls: int
    tries: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Asked:
    """The calls that a tool call made to a model (``side``); for an `embedding` all tokens are input, at prices of
    their own."""

    kind: Literal["model", "embedding"]
    side: Side


@dataclass(frozen=True, slots=True)
class Spent:
    """What is stored with a chat; ``ledger``: the numbers of its lines; ``summaries`` is None until they are made."""

    ledger: tuple[int, ...] = ()
    lost: tuple[Lost, ...] = ()
    summaries: Side | None = None

    def moved(self, lines: Sequence[int]) -> Spent:
        """The same with these ledger lines added."""
        return replace(self, ledger=(*self.ledger, *lines))


def has_begun(newest: StoredEvent, turn: int) -> bool:
    """Whether the newest event says that the turn was begun before and not recorded."""
    return newest.event in ("turn", "delta", "retrying") and newest.data["turn"] == turn


def tries_of(events: Sequence[StoredEvent], turn: int) -> tuple[int, tuple[Lost, ...]]:
    """How often an unrecorded turn was begun, and those of its calls that may have cost something: all except those
    that the service refused because it was busy."""
    tries = [index for index, event in enumerate(events) if _is(event, "turn", turn)]
    lost = []
    for start, end in itertools.pairwise([*tries, len(events)]):
        own = events[start:end]
        if not any(_is(event, "retrying", turn) for event in own):
            written = sum(len(event.data["text"]) for event in own if _is(event, "delta", turn))
            lost.append(Lost(turn, events[start].data["at"], written))
    return len(tries), tuple(lost[:MAX_LOST])


def _is(event: StoredEvent, name: str, turn: int) -> bool:
    return event.event == name and event.data["turn"] == turn


# ── as stored in items ────────────────────────────────────────────────────────────────────────────


def made_json(made: Made | None) -> list[Any] | None:
    """The form in a turn's item: ``[at, seconds, first_seconds, calls, tries, model, lost]``,
    short, because every read pays for it."""
    if made is None:
        return None
    lost = [[call.turn, call.at, call.written] for call in made.lost]
    return [made.at, made.seconds, made.first_seconds, made.calls, made.tries, made.model, lost]


def made_of(data: Sequence[Any] | None) -> Made | None:
    """The reverse; None for a turn of an earlier release."""
    if not data:
        return None
    at, seconds, first_seconds, calls, tries, model, lost = data
    return Made(at, seconds, first_seconds, calls, tries, tuple(Lost(*values) for values in lost), model)


def side_json(side: Side | None) -> dict[str, Any] | None:
    """The form in a chat's item."""
    return asdict(side) if side else None


def side_of(data: Mapping[str, Any] | None) -> Side | None:
    """The reverse."""
    return _side(data) if data else None


def _side(data: Mapping[str, Any]) -> Side:
    names = Side.__dataclass_fields__
    return Side(**{**{name: data[name] for name in names}, "usage": Usage(**data["usage"])})


def asked_json(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """The form in a tool call's record."""
    return [{"kind": entry.kind, **asdict(entry.side)} for entry in asked]


def asked_of(data: Sequence[Mapping[str, Any]]) -> tuple[Asked, ...]:
    """The reverse; earlier releases wrote none."""
    return tuple(Asked(entry["kind"], _side(entry)) for entry in data)


def spent_json(spent: Spent) -> dict[str, Any]:
    """The form in a chat's item; empty fields are left out."""
    lost = [[call.turn, call.at, call.written] for call in spent.lost]
    stored = {"ledger": spent.ledger, "lost": lost, "summaries": side_json(spent.summaries)}
    return {name: value for name, value in stored.items() if value}


def spent_of(data: Mapping[str, Any]) -> Spent:
    """The reverse."""
    lost = tuple(Lost(*values) for values in data.get("lost", ()))
    return Spent(tuple(data.get("ledger", ())), lost, side_of(data.get("summaries")))
