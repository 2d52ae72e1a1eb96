"""Loads that a conversation's memory must withstand, in any size (docs/measurements.md)."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.drivers.long_memory import on_the_wire, picture, prose, query_starts, resent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.drivers.long_memory import Resent, Talk, Wire
    from tests.servers.metered_model import Call

_TOLD_SECONDS: Final = 10.0


class Progress:
    """Progress on standard error, at most every few seconds."""

    def __init__(self, name: str) -> None:
        self._name, self._told, self._began = name, 0.0, time.monotonic()

    def __call__(self, what: str) -> None:
        now = time.monotonic()
        if now - self._told > _TOLD_SECONDS:
            self._told = now
            print(f"{now - self._began:5.0f} s  {self._name}: {what}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the scenarios; lengths in characters, files in bytes.

    ``deep``: turns with two results each; ``wide``: results of one turn, each of ``result`` characters.
    """

    long_queries: int = 400
    long_query: int = 32_000
    ordinary: int = 1_000
    deep: int = 15
    wide: int = 20
    result: int = 100_000
    pictures: int = 8
    picture: int = 500_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario went. ``wrong`` lists what failed."""

    name: str
    chats: int
    records: int
    seconds: float
    early: float
    late: float
    wire: Wire
    resent: Resent
    wrong: tuple[str, ...]


def long_queries(talk: Talk, sizes: Sizes, tell: Callable[[str], None]) -> None:
    """Queries of the greatest length that the API accepts."""
    for number in range(1, sizes.long_queries + 1):
        talk.ask(prose(f"long {number}", sizes.long_query), answer=prose(f"answer {number}", 600))
        tell(f"{number} of {sizes.long_queries} long queries")


def ordinary(talk: Talk, sizes: Sizes, tell: Callable[[str], None]) -> None:
    """Short questions, every fourth with a tool."""
    for number in range(1, sizes.ordinary + 1):
        turns = [[prose(f"page {number}", 5_000)]] if number % 4 == 0 else []
        answer = prose(f"answer {number}", 500 + number * 7 % 1_000)
        talk.ask(prose(f"query {number}", 80 + number * 13 % 320), turns, answer)
        tell(f"{number} of {sizes.ordinary} ordinary queries")


def deep(talk: Talk, sizes: Sizes, tell: Callable[[str], None]) -> None:
    """One query with two large results in every turn, and one after it. It may use up its turns with tools."""
    talk.stops = ("complete", "max_turns")
    turns = [
        [prose(f"deep {turn} {number}", sizes.result) for number in (1, 2)] for turn in range(sizes.deep)
    ]
    _large(talk, turns, tell)


def wide(talk: Talk, sizes: Sizes, tell: Callable[[str], None]) -> None:
    """One query with many large results in one turn, and one after it."""
    _large(talk, [[prose(f"wide {number}", sizes.result) for number in range(sizes.wide)]], tell)


def pictures(talk: Talk, sizes: Sizes, tell: Callable[[str], None]) -> None:
    """One query whose results are images, and one after it."""
    _large(talk, [[picture(f"picture {number}", sizes.picture) for number in range(sizes.pictures)]], tell)


def _large(talk: Talk, turns: Sequence[Sequence[str | bytes]], tell: Callable[[str], None]) -> None:
    tell("one query with large results")
    talk.ask("Please look at all of it.", turns, prose("large", 2_000))
    talk.ask("And what came of it?", answer=prose("after", 300))


SCENARIOS = {
    "long queries": long_queries,
    "ordinary queries": ordinary,
    "many turns of large results": deep,
    "many large results in one turn": wide,
    "images": pictures,
}


def run(
    name: str,
    talk: Talk,
    sizes: Sizes,
    calls: Callable[[], Sequence[Call]],
    room: int,
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run a scenario; everything wrong with it: chats, records, a broken prefix, a request that was refused or has more
    than ``room`` input tokens, as the service counts them or, before its first count, by the cautious estimate.
    """
    began = time.monotonic()
    before = len(calls())
    SCENARIOS[name](talk, sizes, tell)
    seconds = time.monotonic() - began
    tell(f"{len(talk.expected) + len(talk.files)} records by id")
    sent = calls()[before:]
    wire, again = on_the_wire(sent, talk.marker), resent(query_starts(sent, talk.marker))
    wrong = [*talk.wrong(), *wire.refused]
    if max(wire.counted, wire.first) > room:
        wrong.append(
            f"a request has {wire.counted:,} tokens, or {wire.first:,} at first; there is room for {room:,}"
        )
    if again.broken or again.between:
        wrong.append(f"{again.broken} prefixes broken, {again.between:,} tokens sent again between folds")
    tenth = max(len(talk.seconds) // 10, 1)
    return Outcome(
        name,
        len(talk.chats),
        len(talk.expected) + len(talk.files),
        seconds,
        sum(talk.seconds[:tenth]) / tenth,
        sum(talk.seconds[-tenth:]) / tenth,
        wire,
        again,
        tuple(wrong),
    )
