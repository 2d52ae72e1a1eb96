"""What a chat by an API key holds of the key's caps in dollars: the most that its model calls may cost (CONTRACT 8).

    turns       the chat's cost cap, or what a first and a last call may cost if that is more
    summaries   calls over everything that the chat has sent, with room for the most summaries; nothing where its
                answer brings notes, which are in ``turns``
    digest      one call over as much, with the room of a digest
    title       one call over the beginnings of query and answer, if the model may give the conversation its title

A chat can cost more than that by one call alone: the cost cap is checked before each call, with an estimate of its
cost, and a call that is cut and made again is no longer made once all is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from dualtrack.chat.turn_request import call_fields
from dualtrack.chat_times import ChatTimes, call_seconds
from dualtrack.credits.keys import NANO
from dualtrack.memory.digest_writing import DIGEST_CALL_TOKENS
from dualtrack.memory.notes import most_output
from dualtrack.memory.summaries import SummarySettings, at_its_price, summary_settings, summary_tokens
from dualtrack.memory.titles import TITLE_PROMPT_TOKENS, TITLE_TOKENS
from dualtrack.models.cost_cap import CostHold, lowest_cap, most_of_a_call, most_of_a_single_call
from dualtrack.models.thinking import short_fields
from dualtrack.text import cautious_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.summaries import SummaryRequest
    from dualtrack.models.thinking import Thinking
    from dualtrack.profiles import Profile
    from dualtrack.settings import Settings

MOST_SUMMARIES: Final = 40
"""Of a chat by a key that can be paid for in any case; what costs more gets extracts (`affordable`)."""

CHAT_DOLLARS: Final = 0.25
"""The cost cap of a chat by a key where neither profile nor stage has one."""


@dataclass(frozen=True, slots=True)
class CostSettings:
    """What a deployment sets for the cost and the time of chats. ``model``: of turns; ``max_cost``: the cost cap in
    dollars a chat, 0 for none."""

    model: str = ""
    summaries: SummarySettings = field(default_factory=SummarySettings)
    max_cost: float = 0.0


def cost_settings(settings: Settings) -> CostSettings:
    """Those of a deployment."""
    return CostSettings(settings.dualtrack_model, summary_settings(settings), settings.dualtrack_max_cost)


def cost_hold(profile: Profile, settings: CostSettings, *, titled: bool = False) -> CostHold:
    """What a chat of this profile holds. ``titled``: the model may give its conversation a title."""
    model, summaries = profile.model or settings.model, settings.summaries
    call = most_of_turn(model, profile, summaries.thinking)
    turns = _nano(max(lowest_cap(profile.max_cost, settings.max_cost) or CHAT_DOLLARS, 2 * call))
    title = _nano(_most_of_title(model, summaries)) if titled and summaries.titles else 0
    if not profile.history.is_summarised:
        return CostHold(turns, title=title)
    history, by = at_its_price(profile, model, summaries.model).history, summaries.model or model
    written = MOST_SUMMARIES * _written(by, summaries)
    digest = short_fields(by, DIGEST_CALL_TOKENS, summaries.thinking)["max_tokens"]
    return CostHold(
        turns,
        _nano(most_of_a_single_call(by, profile.context_tokens, written))
        if history.calls_for_summaries
        else 0,
        _nano(most_of_a_single_call(by, profile.context_tokens, digest)),
        title,
    )


def _written(model: str, settings: SummarySettings) -> int:
    """The most output tokens of a call for a summary."""
    return int(short_fields(model, summary_tokens(settings.characters), settings.thinking)["max_tokens"])


def _most_of_title(model: str, settings: SummarySettings) -> float:
    model = settings.model or model
    written = short_fields(model, TITLE_TOKENS, settings.thinking)["max_tokens"]
    return most_of_a_single_call(model, TITLE_PROMPT_TOKENS, written)


def chat_times(profile: Profile, settings: CostSettings) -> ChatTimes:
    """How long the parts of a chat of this profile may take: a call as long as its tokens need."""
    model = profile.model or settings.model
    fields = call_fields(profile, model, most_output(profile), settings.summaries.thinking)
    return ChatTimes(call_seconds(fields["max_tokens"]))


def most_of_turn(model: str, profile: Profile, thinking: Thinking) -> float:
    """The most dollars that one call of a turn can cost."""
    output = call_fields(profile, model, most_output(profile), thinking)["max_tokens"]
    return most_of_a_call(model, profile.context_tokens, output)


def affordable(
    requests: Sequence[SummaryRequest], settings: SummarySettings, nanodollars: int
) -> tuple[SummaryRequest, ...]:
    """The first records whose summaries, one call each, cost so much at most; the others get extracts."""
    written = _written(settings.model, settings)
    costs = (
        most_of_a_single_call(settings.model, cautious_tokens(request.system + request.text), written)
        for request in requests
    )
    sums = accumulate(costs)
    return tuple(request for request, cost in zip(requests, sums, strict=True) if _nano(cost) <= nanodollars)


def _nano(dollars: float) -> int:
    return math.ceil(dollars * NANO)
