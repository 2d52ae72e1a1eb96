"""On which records a call asks for notes: as many as the conversation can pay for without being dearer than a full
history by more than three hundredths (CONTRACT 6). Pure.

A note costs its ask, written into the cache, and its tokens of output; what it saves comes later. So the sums that a
conversation keeps anyway (`dualtrack.memory.full_history`) are the purse: what it has cost so far and what its cached
full history would have, both with the call to come. Longest records first: their extracts say least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.ids import kind_of
from dualtrack.memory.notes import MOST_NOTES, NOTE_TOKENS, ask_for
from dualtrack.models.turn import Usage
from dualtrack.text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.memory.full_history import MemorySums
    from dualtrack.memory.records import QueryTrack, TrackBlock
    from dualtrack.models.prices import Rates

MOST_DEARER: Final = 0.03
"""The share of its cached full history's cost by which a conversation with notes may be dearer."""

EXPECTED_ANSWER: Final = 1_500
"""Characters of a conversation's first answer, which is not written yet, for its place among the records."""

_ANSWERS_BEFORE: Final = 4
"""By so many answers of a conversation its next one is expected: it is as long as the longest of them."""

MOST_IGNORED: Final = 3
"""After so many queries in a row whose notes were asked for in vain, a conversation's model is asked no more."""


@dataclass(frozen=True, slots=True)
class CallAhead:
    """The call that may ask, without its ask, in tokens by the service's count: the whole ``prompt``; ``seen``: what of
    it the cache has, if it is warm; the ``past`` of its conversation in it."""

    prompt: int
    seen: int
    past: int
    at: float


@dataclass(frozen=True, slots=True)
class NoteAsk:
    """A record on which a note may be asked for, and its length in characters."""

    record_id: str
    characters: int


def expected_answer(tracks: Sequence[QueryTrack]) -> int:
    """How many characters the answer to come has, by those behind it: an ask on one that turns out short is paid for
    nothing, and is sent again with each later query."""
    answers = [block for track in tracks[-_ANSWERS_BEFORE:] for block in track.blocks if _is_answer(block)]
    return max((block.size or len(block.content) for block in answers), default=EXPECTED_ANSWER)


def _is_answer(block: TrackBlock) -> bool:
    return kind_of(block.ref or block.record_id) == "response"


def spare_nanodollars(sums: MemorySums, call: CallAhead, rates: Rates) -> int:
    """What may still be spent for notes, in 10⁻⁹ dollars; negative if the conversation is too dear already."""
    seen = min(call.seen, call.prompt) if sums.cached.is_warm(call.at) else 0
    own = rates.nanodollars(Usage(cache_read_tokens=seen, cache_write_tokens=call.prompt - seen))
    more = max(sums.tokens - call.past, 0)
    full = own + rates.nanodollars(Usage(cache_read_tokens=more) if seen else Usage(cache_write_tokens=more))
    spent = sums.costs.own + sums.aside + own
    return int((1 + MOST_DEARER) * (sums.costs.full + full)) - spent


def records_to_note(
    asks: Sequence[NoteAsk], spare: int, rates: Rates, *, open_notes: int = 0, again: bool = False
) -> tuple[str, ...]:
    """The ids to ask for, longest record first. ``open_notes``: those that were asked for in this query and are not
    written yet; ``again``: something was asked for in it."""
    left = spare - open_notes * _written(rates)
    chosen: list[str] = []
    for ask in sorted(asks, key=lambda each: -each.characters):
        wanted = [*chosen, ask.record_id]
        asked = estimate_tokens(ask_for(wanted, "", again=again))
        cost = rates.nanodollars(Usage(cache_write_tokens=asked)) + len(wanted) * _written(rates)
        if len(wanted) + open_notes > MOST_NOTES or cost > left:
            break
        chosen = wanted
    return tuple(chosen)


def _written(rates: Rates) -> int:
    return rates.nanodollars(Usage(output_tokens=NOTE_TOKENS))
