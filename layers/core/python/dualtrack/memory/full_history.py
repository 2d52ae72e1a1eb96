"""What a conversation's model calls cost, beside a full history (CONTRACT 4, "What memory costs"). Pure.

A full history sends every record whole in the messages of every call, with the same system, tools and breakpoints, and
makes no summaries. Its calls are made at the moments of ours and cached by the service's rules; calls that only read
the past back, and their results, are left out of it. Beyond the model's window it stops growing.

    a turn is recorded         `ChatMemory.with_call`     one more call on both sides, by the service's counts
    the query has ended        `ChatMemory.ended`         its records join the full history
    summaries, a digest        `MemorySums.aside`           on our side alone; they come after the answer

The sums run on from query to query, so nothing of the past is read for them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from dualtrack.clock import iso
from dualtrack.codec import stored
from dualtrack.models.prices import Rates, call_rates
from dualtrack.models.prompt_cache import CachedPrefix, cached_prompt
from dualtrack.models.turn import Usage
from dualtrack.models.windows import context_window

_LONGEST_MINIMUM: Final = 4_096
"""A service that caches nothing of a longer prompt has no cache. Shorter ones may be below the model's minimum (page
"Prompt caching")."""

_RATIO: Final = 1 / 1.3
"""Of the service's counts to our cautious estimate, before the first call."""


@stored
@dataclass(frozen=True, slots=True)
class CallCosts:
    """What model calls cost in 10⁻⁹ dollars: ``own`` as they were made, ``full`` with the full history."""

    own: int = 0
    full: int = 0

    def __add__(self, other: CallCosts) -> CallCosts:
        """The costs of both."""
        return CallCosts(self.own + other.own, self.full + other.full)


@stored
@dataclass(frozen=True, slots=True)
class MemorySums:
    """A conversation's running sums.

    ``costs``: of its turns; ``aside``: of its summaries and digests, in 10⁻⁹ dollars. The full history has ``tokens``
    in its past messages, by the service's counts, and its last call with tools has left ``cached``. ``ratio``: of those
    counts to our estimate; 0 before the first call. ``beyond_window``: it has outgrown the model's window.
    ``ignored``: the newest queries whose notes were asked for in vain.
    """

    costs: CallCosts = field(default_factory=CallCosts)
    aside: int = 0
    tokens: int = 0
    cached: CachedPrefix = field(default_factory=CachedPrefix)
    ratio: float = 0.0
    beyond_window: bool = False
    ignored: int = 0

    @property
    def counted(self) -> float:
        """``ratio``, or what is expected before the first call."""
        return self.ratio or _RATIO


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """A model call as it was made, for the same call with the full history.

    ``at``: when it was sent (epoch seconds); ``usage``: of its ``calls`` requests; ``lost``: 10⁻⁹ dollars of requests
    before it that were never recorded. Estimates in cautious tokens: of the whole request, of its ``fixed`` part (tools
    and system) and of its ``past``; ``whole``: by how much the running query would be longer if nothing of it were cut,
    nothing recalled and no note asked for (negative: shorter). ``is_last``: it may use no tools, so its messages,
    which the service would cache apart, are not cached; ``is_recall``: its reply only reads the past back;
    ``noted``: what of its output are notes; ``rates``: by which the call is charged.
    """

    model: str
    at: float
    usage: Usage
    calls: int = 1
    lost: int = 0
    estimated: int = 0
    fixed: int = 0
    past: int = 0
    whole: int = 0
    has_files: bool = False
    is_last: bool = False
    is_recall: bool = False
    noted: int = 0
    rates: Rates | None = None

    @property
    def prompt_tokens(self) -> int:
        """Of one of its requests, by the service's count."""
        return self.usage.prompt_tokens // max(self.calls, 1)

    def nanodollars(self, usage: Usage, rates: Rates | None = None) -> int:
        """What its requests cost on that day with this usage in all, if its ``rates`` are not given."""
        return call_rates(rates, self.model, usage, self.calls, iso(self.at)).nanodollars(usage)


@stored
@dataclass(frozen=True, slots=True)
class ChatMemory:
    """The figures of a chat. ``sums``: its conversation's, with this chat in them; ``costs``: of its own turns;
    ``aside``: of its own summaries, in 10⁻⁹ dollars."""

    sums: MemorySums = field(default_factory=MemorySums)
    costs: CallCosts = field(default_factory=CallCosts)
    aside: int = 0

    def with_call(self, call: MeasuredCall) -> ChatMemory:
        """After a recorded turn."""
        own = call.nanodollars(call.usage, call.rates) + call.lost
        full, sums = _full_call(self.sums, call)
        return replace(self, sums=sums)._with(CallCosts(own, own if full is None else full))

    def with_lost(self, lost: int) -> ChatMemory:
        """After requests that were never recorded: they would have been lost with a full history too."""
        return self._with(CallCosts(lost, lost))

    def ended(self, model: str, estimated: int) -> ChatMemory:
        """After the end of the query, whose records have this many tokens by `recall.history_tokens`."""
        tokens = self.sums.tokens + round(self.sums.counted * estimated)
        return replace(self, sums=replace(self.sums, tokens=min(tokens, context_window(model))))

    def heard(self, *, due: bool, noted: bool) -> ChatMemory:
        """After a query in which notes were ``due``, since they were asked for, or not, and came, or not."""
        ignored = 0 if noted else self.sums.ignored + due
        return replace(self, sums=replace(self.sums, ignored=ignored))

    def with_aside(self, before: int, own: int) -> ChatMemory:
        """After the chat's summaries; ``before``: the conversation's summaries and digests without them."""
        return replace(self, sums=replace(self.sums, aside=before + own), aside=own)

    def _with(self, costs: CallCosts) -> ChatMemory:
        sums = replace(self.sums, costs=self.sums.costs + costs)
        return replace(self, sums=sums, costs=self.costs + costs)


def _full_call(sums: MemorySums, call: MeasuredCall) -> tuple[int | None, MemorySums]:
    """What the call costs with the full history, None for as much as ours; and the sums after it."""
    if not call.prompt_tokens or not call.estimated:
        return None, sums
    ratio = call.prompt_tokens / call.estimated
    if call.has_files and sums.ratio:  # no estimate says what files take
        ratio = sums.ratio
    sums = replace(sums, ratio=ratio)
    if call.is_recall:
        return 0, sums
    wanted = call.prompt_tokens + sums.tokens + round(ratio * (call.whole - call.past))
    window = context_window(call.model)
    tokens = min(max(wanted, 0), window)
    usage = _full_prompt(sums, call, tokens, round(ratio * call.fixed))
    whole = Usage(
        usage.input_tokens * call.calls,
        max(call.usage.output_tokens - call.noted, 0),
        usage.cache_read_tokens * call.calls,
        usage.cache_write_tokens * call.calls,
    )
    if not usage.input_tokens and not call.is_last:
        sums = replace(sums, cached=CachedPrefix(tokens, call.at))
    after = replace(sums, beyond_window=sums.beyond_window or wanted > window)
    return call.nanodollars(whole) + call.lost, after


def _full_prompt(sums: MemorySums, call: MeasuredCall, tokens: int, fixed: int) -> Usage:
    """The usage of one request's prompt. Tools and system may have been cached by another conversation: then our own
    call has read them too."""
    if not _is_cached(call, tokens):
        return Usage(tokens)
    shared = min(fixed, call.usage.cache_read_tokens // call.calls, tokens)
    if call.is_last:
        shared = min(fixed, tokens) if sums.cached.is_warm(call.at) else shared
        return Usage(tokens - shared, cache_read_tokens=shared)
    usage = cached_prompt(sums.cached, tokens, call.at)
    if usage.cache_read_tokens >= shared:
        return usage
    return Usage(cache_read_tokens=shared, cache_write_tokens=tokens - shared)


def _is_cached(call: MeasuredCall, tokens: int) -> bool:
    """Whether the service caches a prompt of this length, by what it has said of ours."""
    if call.usage.cache_read_tokens + call.usage.cache_write_tokens:
        return True
    return call.prompt_tokens <= _LONGEST_MINIMUM < tokens
