"""What calls of the model took, beside their tokens: what a chat's receipt is made of (CONTRACT 9). Pure.

    turn        `Made`       stored with the turn: when it was asked, how long it took, how often it was tried
    tool call   `Asked`    calls that the tool made inside: of a model, and for embeddings
    chat        `Lost`       calls of a turn that were begun and of which nothing was recorded
                `Side`       calls for the summaries of its query, and for a digest
                ledger       the numbers of its lines in its user's ledger

All of it is written in the transaction that records what it belongs to, so nothing of it can be there twice. Items of
earlier releases lack it.
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
"""Of one turn; a workflow tries a turn a few times, and the sweep ends what goes on and on."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A call that was begun ``at`` (ISO 8601) and never recorded: its step died, was overtaken, or the chat ended.

    ``written``: the characters of text that it had shown.
    """

    turn: int
    at: str
    written: int


@dataclass(frozen=True, slots=True)
class Made:
    """How a recorded turn's call went, in seconds. ``tries``: requests to the model's service in all, those that
    were refused, ``lost`` or broken off included; ``calls``: how many of them the turn's usage counts."""

    at: str
    seconds: float
    first_seconds: float | None = None
    calls: int = 1
    tries: int = 1
    lost: tuple[Lost, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """Calls that no turn made: ``calls`` answers after ``tries`` requests, and what they took together."""

    at: str
    model: str
    seconds: float
    calls: int
    tries: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Asked:
    """Calls that one tool call made of one model (``side``); `embedding`: tokens are input, and have their
    own prices."""

    kind: Literal["model", "embedding"]
    side: Side


@dataclass(frozen=True, slots=True)
class Spent:
    """What is kept with a chat; ``ledger``: the numbers of its lines; ``summaries`` is None until they are made."""

    ledger: tuple[int, ...] = ()
    lost: tuple[Lost, ...] = ()
    summaries: Side | None = None

    def moved(self, lines: Sequence[int]) -> Spent:
        """With further lines of the ledger."""
        return replace(self, ledger=(*self.ledger, *lines))


def has_begun(newest: StoredEvent, turn: int) -> bool:
    """Whether the newest event says that the turn was begun before and not recorded."""
    return newest.event in ("turn", "delta", "retrying") and newest.data["turn"] == turn


def tries_of(events: Sequence[StoredEvent], turn: int) -> tuple[int, tuple[Lost, ...]]:
    """How often a turn that is not recorded was begun, and those of its calls that may have cost something: all but
    those that the service turned away because it was busy."""
    tries = [place for place, event in enumerate(events) if _is(event, "turn", turn)]
    lost = []
    for start, end in itertools.pairwise([*tries, len(events)]):
        own = events[start:end]
        if not any(_is(event, "retrying", turn) for event in own):
            written = sum(len(event.data["text"]) for event in own if _is(event, "delta", turn))
            lost.append(Lost(turn, events[start].data["at"], written))
    return len(tries), tuple(lost[:MAX_LOST])


def _is(event: StoredEvent, name: str, turn: int) -> bool:
    return event.event == name and event.data["turn"] == turn


# ── as items have it ──────────────────────────────────────────────────────────────────────────────


def made_json(made: Made | None) -> list[Any] | None:
    """Of a turn's item: ``[at, seconds, first_seconds, calls, tries, model, lost]``,
    short, for every read pays for it."""
    if made is None:
        return None
    lost = [[one.turn, one.at, one.written] for one in made.lost]
    return [made.at, made.seconds, made.first_seconds, made.calls, made.tries, made.model, lost]


def made_of(data: Sequence[Any] | None) -> Made | None:
    """None of an earlier release's turn."""
    if not data:
        return None
    at, seconds, first_seconds, calls, tries, model, lost = data
    return Made(at, seconds, first_seconds, calls, tries, tuple(Lost(*one) for one in lost), model)


def side_json(side: Side | None) -> dict[str, Any] | None:
    """Of a chat's item."""
    return asdict(side) if side else None


def side_of(data: Mapping[str, Any] | None) -> Side | None:
    """The reverse."""
    return _side(data) if data else None


def _side(data: Mapping[str, Any]) -> Side:
    names = Side.__dataclass_fields__
    return Side(**{**{name: data[name] for name in names}, "usage": Usage(**data["usage"])})


def asked_json(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Of a tool call's record."""
    return [{"kind": one.kind, **asdict(one.side)} for one in asked]


def asked_of(data: Sequence[Mapping[str, Any]]) -> tuple[Asked, ...]:
    """The reverse; releases before wrote none."""
    return tuple(Asked(one["kind"], _side(one)) for one in data)


def spent_json(spent: Spent) -> dict[str, Any]:
    """Of a chat's item; what is empty is left out."""
    lost = [[one.turn, one.at, one.written] for one in spent.lost]
    given = {"ledger": spent.ledger, "lost": lost, "summaries": side_json(spent.summaries)}
    return {name: value for name, value in given.items() if value}


def spent_of(data: Mapping[str, Any]) -> Spent:
    """The reverse."""
    lost = tuple(Lost(*one) for one in data.get("lost", ()))
    return Spent(tuple(data.get("ledger", ())), lost, side_of(data.get("summaries")))
