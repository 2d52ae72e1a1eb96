"""Other memory strategies, as the requests that they send for the same conversation (docs/measurements.md).

Every strategy is charged by the offline model's prompt cache, as dualtrack's requests are. Each simulation follows the
documentation or the code of the original, named at each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack.models.prices import dollars, rates_of
from dualtrack.models.turn import Usage
from dualtrack.settings import Settings
from dualtrack.text import estimate_tokens
from dualtrack_stack.local.offline_model import wire
from dualtrack_stack.local.offline_model.tokens import PromptCache, count

from tests.drivers.long_memory import prose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.models.prices import Rates

TOOL: Final = "kit_page"
_GOLDEN: Final = 0.6180339887
MARK: Final = {"cache_control": {"type": "ephemeral"}}

MODEL: Final = Settings().dualtrack_model
RATES: Final = rates_of(MODEL)
"""Of the default model, for a prompt that is not long."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange of the fixed conversation: the query, the results of a turn's tools (or of none), the answer."""

    number: int
    query: str
    results: tuple[str, ...]
    answer: str
    tool: str = TOOL


@dataclass(frozen=True, slots=True)
class Charge:
    """What one model call cost, in tokens. ``loop``: whether it belongs to the query's tool loop; ``for_an_hour``:
    those written to the cache that lasts so long."""

    plain: int
    written: int
    read: int
    output: int
    loop: bool = True
    for_an_hour: int = 0

    @property
    def tokens(self) -> int:
        """All input tokens."""
        return self.plain + self.written + self.read + self.for_an_hour

    @property
    def weighted(self) -> float:
        """Input, weighted by price, in plain input tokens."""
        written = RATES.cache_write * self.written + RATES.cache_write_hour * self.for_an_hour
        return self.plain + (written + RATES.cache_read * self.read) / RATES.input

    @property
    def with_output(self) -> float:
        """The same with the answer."""
        return self.at(RATES)

    def at(self, rates: Rates) -> float:
        """Input and output at these rates, in plain input tokens."""
        written = rates.cache_write * self.written + rates.cache_write_hour * self.for_an_hour
        return (
            self.plain + (written + rates.cache_read * self.read + rates.output * self.output) / rates.input
        )

    @property
    def dollars(self) -> float:
        """By the default model's prices."""
        kept = RATES.cache_write_hour * self.for_an_hour / 1_000_000
        return dollars(MODEL, Usage(self.plain, self.output, self.read, self.written)) + kept


@dataclass
class Remembered:
    """A strategy's calls, query by query.

    ``ended``: why no further query was possible; ``recalled``: how many of the ``old`` results the model can still read
    or fetch in full at the last query.
    """

    charges: list[list[Charge]] = field(default_factory=list)
    ended: str = ""
    recalled: int = 0
    old: int = 0
    largest: int = 0
    note: str = ""


@dataclass
class Service:
    """The model's service: its context window and its prompt cache, for one strategy. ``pause``: the seconds before
    this ``share`` of the queries; ``for_an_hour``: the cache outlasts them, and what is written to it costs twice as
    much as input."""

    first_turn: Mapping[str, Any]
    window: int
    pause: float = 0.0
    for_an_hour: bool = False
    share: float = 1.0
    now: float = 0.0
    cache: PromptCache = field(init=False)
    charges: list[Charge] = field(default_factory=list)
    largest: int = 0

    def __post_init__(self) -> None:
        self.cache = PromptCache(lambda: 0.0 if self.for_an_hour else self.now)

    def ask(self, messages: Sequence[Mapping[str, Any]], output: str, *, loop: bool = True) -> None:
        """One call, cached up to its last block; OverflowError if the window is full."""
        request = self.request(messages)
        total = count(request)
        if total > self.window:
            raise OverflowError(f"{total:,} tokens")
        self.largest = max(self.largest, total)
        used = self.cache.use(request)
        short, long = (0, used.cache_written) if self.for_an_hour else (used.cache_written, 0)
        self.charges.append(
            Charge(used.input_tokens, short, used.cache_read, estimate_tokens(output), loop, long)
        )

    def request(self, messages: Sequence[Mapping[str, Any]]) -> wire.Request:
        """With the system prompt and the tools that dualtrack sends, and a breakpoint at the end."""
        *earlier, last = messages
        *blocks, end = last["content"]
        marked = {**last, "content": [*blocks, {**end, **MARK}]}
        kept = {name: self.first_turn[name] for name in ("model", "max_tokens", "system", "tools")}
        return wire.Request.model_validate({**kept, "messages": [*earlier, marked]})


def pause_before(query: int, pause: float, share: float) -> float:
    """The seconds before a query if this share of all, spread evenly, comes after a pause."""
    return pause if query * _GOLDEN % 1 < share else 0.0


Messages = list[dict[str, Any]]


def said(role: str, text: str) -> dict[str, Any]:
    """A message of one text block."""
    return {"role": role, "content": [{"type": "text", "text": text}]}


def rounds(exchange: Exchange) -> tuple[Messages, Messages, Messages]:
    """An exchange's query, its tool round if it has tools, its answer."""
    if not exchange.results:
        return [said("user", exchange.query)], [], [said("assistant", exchange.answer)]
    numbers = range(1, len(exchange.results) + 1)
    ids = [f"toolu_01{exchange.number:011}{number:011}" for number in numbers]  # as long as the service's
    asked = [
        {"type": "tool_use", "id": name, "name": exchange.tool, "input": {"query": str(number)}}
        for name, number in zip(ids, numbers, strict=True)
    ]
    brought = [
        {"type": "tool_result", "tool_use_id": name, "content": [{"type": "text", "text": text}]}
        for name, text in zip(ids, exchange.results, strict=True)
    ]
    tool_round = [{"role": "assistant", "content": asked}, {"role": "user", "content": brought}]
    return [said("user", exchange.query)], tool_round, [said("assistant", exchange.answer)]


def _run(
    service: Service,
    exchanges: Sequence[Exchange],
    turn: Callable[[Messages], Messages],
    after: Callable[[Messages], Messages] = lambda history: history,
) -> Remembered:
    """Every query's calls, on a history that ``turn`` edits before a call and ``after`` replaces after a query."""
    history: Messages = []
    seen: Messages = []
    done = Remembered()
    for exchange in exchanges:
        service.charges = []
        service.now += pause_before(exchange.number, service.pause, service.share)
        query, tool_round, answer = rounds(exchange)
        try:
            if tool_round:
                called = "".join(json.dumps(block) for block in tool_round[0]["content"])
                service.ask(turn([*history, *query]), called)
            seen = turn([*history, *query, *tool_round])
            service.ask(seen, exchange.answer)
        except OverflowError as full:
            done.ended = f"query {exchange.number}: {full}"
            break
        history = after([*history, *query, *tool_round, *answer])
        done.charges.append(service.charges)
    old = [text for past in exchanges[: max(len(done.charges) - 1, 0)] for text in past.results]
    here = set(_texts(seen))
    done.recalled, done.old = sum(text in here for text in old), len(old)
    done.largest = service.largest
    return done


def _texts(messages: Messages) -> Iterator[str]:
    """Every text of the messages, results included."""
    for message in messages:
        for block in message["content"]:
            for part in (block, *(block.get("content") or ())):
                yield part.get("text", "")


def full_history(service: Service, exchanges: Sequence[Exchange]) -> Remembered:
    """Every message whole, cached up to its end."""
    return _run(service, exchanges, lambda messages: messages)


EXCHANGES_KEPT: Final = 2


def last_exchanges(service: Service, exchanges: Sequence[Exchange]) -> Remembered:
    """The last two queries and their answers, without tools."""

    def after(history: Messages) -> Messages:
        texts = [message for message in history if message["content"][0]["type"] == "text"]
        return texts[-2 * EXCHANGES_KEPT :]

    return _run(service, exchanges, lambda messages: messages, after)


CLEARED: Final = "[Old tool result content cleared]"
CLEAR_TRIGGER, CLEAR_KEEP = 30_000, 3


def cleared_tool_uses(service: Service, exchanges: Sequence[Exchange]) -> Remembered:
    """The service's context editing, ``clear_tool_uses_20250919`` with ``trigger`` 30,000 input tokens and ``keep`` 3:
    before each call above it, all results but the last three are replaced by a placeholder (its documentation).
    """

    def turn(messages: Messages) -> Messages:
        if sum(map(estimate_tokens, _texts(messages))) <= CLEAR_TRIGGER:
            return messages
        results = [
            (position, index)
            for position, message in enumerate(messages)
            for index, block in enumerate(message["content"])
            if block["type"] == "tool_result"
        ]
        return _with_cleared(messages, set(results[:-CLEAR_KEEP]))

    return _run(service, exchanges, turn)


def _with_cleared(messages: Messages, cleared: set[tuple[int, int]]) -> Messages:
    return [
        {
            **message,
            "content": [
                {**block, "content": [{"type": "text", "text": CLEARED}]}
                if (position, index) in cleared
                else block
                for index, block in enumerate(message["content"])
            ],
        }
        for position, message in enumerate(messages)
    ]


COMPACT_ITEMS, COMPACTED_CHARACTERS = 10, 4_000


def compaction(service: Service, exchanges: Sequence[Exchange]) -> Remembered:
    """OpenAI's ``OpenAIResponsesCompactionSession`` (openai-agents 0.24): behind a query, once ten items are neither a
    user's message nor compacted, ``responses.compact`` reads the whole session; what is left are the users' messages
    and one compacted item.

    Assumed in its favour: the item has 1,000 tokens, and the call finds the session in the cache.
    """
    compacted = "(compacted)"

    def after(history: Messages) -> Messages:
        asked = [
            block
            for message in history
            for block in message["content"]
            if message["role"] == "user" and block["type"] == "text"
        ]
        items = [block for message in history for block in message["content"]]
        before = [block for block in items if block["type"] == "text" and block["text"].startswith(compacted)]
        if len(items) - len(asked) - len(before) < COMPACT_ITEMS:
            return history
        text = f"{compacted} {prose(str(len(asked)), COMPACTED_CHARACTERS - len(compacted) - 1)}"
        service.ask([*history, said("user", "Compact.")], text, loop=False)
        return [{"role": "user", "content": asked}, said("assistant", text)]

    return _run(service, exchanges, lambda messages: messages, after)


OTHERS: Final[dict[str, Callable[[Service, Sequence[Exchange]], Remembered]]] = {
    "full history": full_history,
    f"last {EXCHANGES_KEPT} exchanges": last_exchanges,
    f"clearing, keep {CLEAR_KEEP}": cleared_tool_uses,
    "compaction": compaction,
}
