"""Data of model calls beside their tokens, for a chat's receipt (CONTRACT 9). Pure.

    turn        `TurnCall`       stored with the turn: when it was asked, how long it took, how often it was tried
    tool call   `ToolSideCalls`    the tool's own calls, to a model and for embeddings
    chat        `Heard`      the newest answer of which a first byte came, written at once
                `LostCall`       calls of a turn that were begun and never recorded
                `ModelWait`     its waits for a busy model
                `EndedPause`     its pauses
                `SideCalls`       calls for the summaries of its query, for a digest and a title
                ledger       the numbers of its lines in its user's ledger

All of it but `Heard` is written in the transaction that records what it belongs to, so it cannot be recorded twice.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from dualtrack.codec import stored
from dualtrack.events import WRITING
from dualtrack.models.cache_word import CacheWord
from dualtrack.models.prices import Rates, rates_of
from dualtrack.models.turn import Usage
from dualtrack.text import tokens_of
from dualtrack.vocabulary import DecidedBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.events import StoredEvent

MAX_LOST: Final = 50
"""Maximum number for a turn: the workflow retries a turn a few times, and the sweep ends a chat that never ends."""


@stored(row=True)
@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that was begun ``at`` (ISO 8601) and never recorded: its step died, was overtaken, or the chat ended.

    ``written``: the characters of text that it had streamed; ``usage``: what it cost if its first byte came: the prompt
    as the service reported it, and the text; ``rates``: by which it is charged, None if they were not kept.
    """

    turn: int
    at: str
    written: int
    usage: Usage | None = None
    rates: Rates | None = None


@stored(row=True)
@dataclass(frozen=True, slots=True)
class HeardBefore:
    """The first byte of an answer to an earlier try of the same turn."""

    tries: int
    usage: Usage


@stored(row=True)
@dataclass(frozen=True, slots=True)
class Heard:
    """The first byte of an answer: to which try (from 1) of which turn, from which ``model``, under which name the
    service says that it was ``served``, and the usage that it reports before it writes. ``before``: those of the turn's
    earlier tries, which were paid too."""

    turn: int
    tries: int
    model: str
    served: str = ""
    usage: Usage = field(default_factory=Usage)
    before: tuple[HeardBefore, ...] = ()

    def behind(self, earlier: Heard | None) -> Heard:
        """The same with what was heard of the turn before."""
        if earlier is None or earlier.turn != self.turn:
            return self
        heard = (*earlier.before, HeardBefore(earlier.tries, earlier.usage))
        return replace(self, before=tuple(one for one in heard if one.tries != self.tries)[-MAX_LOST:])

    def usage_of(self, turn: int, tries: int) -> Usage | None:
        """What the service reported as an answer to this try began; None if none did."""
        if turn != self.turn:
            return None
        heard = {one.tries: one.usage for one in self.before} | {self.tries: self.usage}
        return heard.get(tries)


@stored(row=True)
@dataclass(frozen=True, slots=True)
class ModelWait:
    """The waits of a turn for a busy model: when the first began (ISO 8601), how many, and their seconds in all."""

    turn: int
    at: str
    times: int
    seconds: int


def lost_usage(call: LostCall, prompt: int) -> Usage:
    """What a lost call cost: as far as the service reported it, else a ``prompt`` of that many tokens, all of it
    uncached, and the text that came."""
    return call.usage or Usage(prompt, tokens_of(call.written))


def at_rates(lost: Sequence[LostCall], model: str, prompt: int) -> tuple[LostCall, ...]:
    """The same with their rates, by which they stay charged; ``prompt`` as in `lost_usage`."""
    tokens = [lost_usage(call, prompt).prompt_tokens for call in lost]
    return tuple(
        replace(call, rates=call.rates or rates_of(model, many, call.at))
        for call, many in zip(lost, tokens, strict=True)
    )


def prompt_beside(lost: Sequence[LostCall], recorded: int) -> int:
    """The tokens of the prompt of calls that were lost before their first byte, where no later one of the turn is
    recorded: as another try of the turn has reported it, else those of the turn before (``recorded``)."""
    heard = [call.usage.prompt_tokens for call in lost if call.usage]
    return heard[-1] if heard else recorded


@stored(row=True)
@dataclass(frozen=True, slots=True)
class EndedPause:
    """A pause that is over: since when (ISO 8601) how many calls of the turn waited, how long, and what ended it."""

    turn: int
    at: str
    calls: int
    seconds: int
    by: DecidedBy | Literal["cancelled"]


@dataclass(frozen=True, slots=True)
class EarlierTries:
    """An unrecorded turn: how often it was begun, its calls that may have cost something, and its waits."""

    tries: int = 0
    lost: tuple[LostCall, ...] = ()
    waited: ModelWait | None = None


@stored(row=True)
@dataclass(frozen=True, slots=True)
class TurnCall:
    """Data of a recorded turn's call; times in seconds. ``tries``: all requests to the model's service, including
    refused, ``lost`` and interrupted ones; ``calls``: how many of them are in the turn's usage; ``unknown_stop``: the
    service's reason for the end of the answer, if nothing here knows it; ``rates`` as in `LostCall`; ``cache``: the
    service's word on its cache, None if it gave none."""

    at: str
    seconds: float
    first_seconds: float | None = None
    calls: int = 1
    tries: int = 1
    lost: tuple[LostCall, ...] = ()
    model: str = ""
    waited: ModelWait | None = None
    unknown_stop: str = ""
    rates: Rates | None = None
    cache: CacheWord | None = None


@stored(row=True)
@dataclass(frozen=True, slots=True)
class SideCalls:
    """Calls outside the turns: ``calls`` answers after ``tries`` requests, and their total usage. ``missing``:
    summaries that were asked for and not made; ``rates`` as in `LostCall`."""

    at: str
    model: str
    seconds: float
    calls: int
    tries: int
    usage: Usage = field(default_factory=Usage)
    missing: int = 0
    rates: Rates | None = None


@stored(row=True)
@dataclass(frozen=True, slots=True)
class ToolSideCalls:
    """The calls that a tool call made to a model (``side``); for an `embedding` all tokens are input, at prices of
    their own."""

    kind: Literal["model", "embedding"]
    side: SideCalls


@stored
@dataclass(frozen=True, slots=True)
class ReceiptData:
    """What is stored with a chat; ``ledger``: the numbers of its lines; ``summaries`` is None until they are made."""

    ledger: tuple[int, ...] = ()
    lost: tuple[LostCall, ...] = ()
    waited: ModelWait | None = None
    summaries: SideCalls | None = None
    pauses: tuple[EndedPause, ...] = ()

    def moved(self, lines: Sequence[int]) -> ReceiptData:
        """The same with these ledger lines added."""
        return replace(self, ledger=(*self.ledger, *lines))


UNSEEN: Final = 2_000
"""Characters that an answer may have behind its text which are in no event: notes (`dualtrack.memory.notes`)."""

_WRITTEN: Final = ("thinking", "delta")
"""The events that bring what a model writes, all of which is paid."""


def has_begun(newest: StoredEvent, turn: int) -> bool:
    """Whether the newest event says that the turn was begun before and not recorded. Every event that a turn writes
    between `turn` and its record stands here; else the receipt loses a call when the turn is repeated."""
    return newest.event in WRITING | {"turn", "retrying", "left_out"} and newest.data["turn"] == turn


def begun_before(events: Sequence[StoredEvent], turn: int, heard: Heard | None) -> EarlierTries:
    """What an unrecorded turn has behind it. A call that the service refused because it was busy costs nothing, unless
    its answer had begun (``heard``, or text)."""
    begins = [index for index, event in enumerate(events) if _is(event, "turn", turn=turn)]
    lost = []
    for number, (start, end) in enumerate(itertools.pairwise([*begins, len(events)]), start=1):
        own = events[start:end]
        written = sum(len(event.data["text"]) for event in own if _is(event, *_WRITTEN, turn=turn))
        written += UNSEEN * any(_is(event, "written", turn=turn) for event in own)
        begun = heard.usage_of(turn, number) if heard else None
        usage = _cut(begun, written) if begun else None
        if written or usage or not any(_is(event, "retrying", turn=turn) for event in own):
            lost.append(LostCall(turn, events[start].data["at"], written, usage))
    return EarlierTries(len(begins), tuple(lost[-MAX_LOST:]), waits_of(events, turn))


def waits_of(events: Sequence[StoredEvent], turn: int) -> ModelWait | None:
    """The waits of a turn."""
    waits = [event for event in events if _is(event, "retrying", turn=turn)]
    if not waits:
        return None
    return ModelWait(turn, waits[0].data["at"], len(waits), sum(event.data["seconds"] for event in waits))


def _cut(begun: Usage, written: int) -> Usage:
    """The cost of an answer that was cut: its prompt, and the text that came."""
    return replace(begun, output_tokens=max(begun.output_tokens, tokens_of(written)))


def _is(event: StoredEvent, *names: str, turn: int) -> bool:
    return event.event in names and event.data["turn"] == turn
