"""How much of the running query is sent, so that a call stays within its budget (CONTRACT 6, "The window").

    new results of the last turn ── fit ──► sent in full
                                       ├──► they share what is left: small ones in full, large ones cut alike
                                       └──► no room: the oldest become extracts until at least a third is free
    the service says "too long" ── smaller ──► cut the newest harder ► older ones as extracts ► the minimum

Pure. All figures are tokens by a cautious estimate (`dualtrack.text.cautious_tokens`). The text of the query is cut
last: after its files, and after the results of earlier turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.media import within_request
from dualtrack.memory.blocks import result_block
from dualtrack.memory.estimate import FRAME_TOKENS, block_tokens, message_tokens, tokens_of_files
from dualtrack.memory.extracts import EXTRACT_LIMIT
from dualtrack.memory.notes import most_output
from dualtrack.memory.refused_files import without_files
from dualtrack.memory.sending import ResultCut
from dualtrack.memory.view import build, cuts_in_force, thoughts
from dualtrack.models.windows import context_window
from dualtrack.text import cautious_tokens, neutralise, within_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dualtrack.memory.blocks import SentResult
    from dualtrack.memory.sending import Sending
    from dualtrack.memory.view import View
    from dualtrack.models.thinking import Thinking
    from dualtrack.models.turn import ToolCall
    from dualtrack.profiles import Profile

LEAST_QUERY: Final = 2_000
"""Characters of a query that are always sent: a short query is sent unchanged."""

OWN_EXTRACT: Final = EXTRACT_LIMIT + 150
"""Up to this length a result is not cut: an extract with its note would not be shorter."""

_NOTE: Final = 100
"""Reserved for the note in the last call. A retry may be the last call although the first try was not."""

_NOTHING: Final = ResultCut(0)
_CORRECTION: Final = (1 / 1.3, 2.0)
"""Bounds of the correction: the true count is between that of the rough estimate and twice the cautious one."""


def room_for(profile: Profile, model: str, thinking: Thinking, fixed: int, last: Sending) -> int:
    """The tokens for the messages of a call: its budget without system and tools (``fixed``) and without the answer,
    corrected by the service's count for the previous call (``last``)."""
    answer = most_output(profile)
    budget = max(profile.context_tokens - answer, profile.context_tokens // 4)
    window = context_window(model) - answer - thinking.room
    return int(min(budget, window) / _correction(last)) - fixed


def _correction(last: Sending) -> float:
    least, most = _CORRECTION
    if not last.reported or not last.estimated:
        return 1.0
    return min(max(last.reported / last.estimated, least), most)


def fit(view: View, room: int) -> View:
    """The view with the cuts for this call: those of the query and its files before the first call, those of the last
    turn's results before a later one. Earlier cuts do not change, except for old results that become extracts."""
    if not view.turns:
        return _with_query_within(view, room)
    cuts = cuts_in_force(view)
    new = {call.id for call in view.turns[-1].calls if call.id not in view.cuts.results}
    view = _with(view, {call_id: cut for call_id, cut in cuts.items() if call_id not in new})
    fresh = _fresh(view, new)
    left = room - _taken(view, fresh)
    least = sum(result.least for result in fresh)
    if left < max(room // 4, least) and left < sum(result.need for result in fresh) + _file_tokens(
        view, fresh
    ):
        freeing = max(max(room, 0) // 3 - min(left, 0), least - left)
        view, freed = _with_extracts(view, new, freeing)
        left += freed
    return _with(view, _shared(view, fresh, left))


def smaller(view: View, steps: Iterator[ShorteningStep]) -> View | None:
    """A smaller view, by the first of the remaining steps (`STEPS`) that makes it smaller; None if none does."""
    taken = message_tokens(build(view).messages)
    for step in steps:
        reduced = step(view)
        if message_tokens(build(reduced).messages) < taken:
            return reduced
    return None


# ── the query ─────────────────────────────────────────────────────────────────────────────────────


def _with_query_within(view: View, room: int) -> View:
    """The query's files, as far as they fit beside its text and some room for results; text files are cut alike. The
    text is cut only if it alone is too long."""
    bare = _with(view, {file.record_id: _NOTHING for file in view.files})
    bare = replace(bare, limit="", cuts=replace(bare.cuts, attachments=0))
    left = room - _NOTE - message_tokens(build(bare).messages)
    if left < 0:
        length = within_tokens(view.query.content, cautious_tokens(view.query.content) + left - _NOTE)
        length = max(length, LEAST_QUERY)
        cut = length if length < len(view.query.content) else None
        return replace(bare, limit=view.limit, cuts=replace(bare.cuts, query=cut))
    return _with_files_within(view, left - max(room, 0) // 8)


def _with_files_within(view: View, room: int) -> View:
    """Images and PDFs within half of the room, or within what the texts leave; then the texts."""
    allowed = view.attachments[: within_request(view.attachments, 0, 0)]
    in_force = cuts_in_force(view)
    texts = [file.text[: in_force[file.record_id].characters] for file in view.files]
    needs = [cautious_tokens(neutralise(text)) for text in texts]
    files = _files_within(allowed, room - min(sum(needs), max(room, 0) // 2))
    shares = fair_shares(needs, room - tokens_of_files(allowed[:files]))
    cuts = {
        file.record_id: ResultCut(_characters_within(text, need, share))
        for file, text, need, share in zip(view.files, texts, needs, shares, strict=True)
    }
    view = _with(view, cuts)
    return replace(view, cuts=replace(view.cuts, attachments=files))


def _files_within(files: Sequence[Mapping[str, str]], room: int) -> int:
    count = 0
    for file in files:
        room -= tokens_of_files([file])
        if room < 0:
            break
        count += 1
    return count


# ── results ───────────────────────────────────────────────────────────────────────────────────────


def _with(view: View, results: Mapping[str, ResultCut]) -> View:
    return replace(view, cuts=view.cuts.with_results(results))


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A result that was not sent before. ``text``: as much of it as the profile allows; ``need``, ``least``: tokens of
    that text and of its extract, without frame and note."""

    call_id: str
    text: str
    media: tuple[Mapping[str, str], ...]
    need: int
    least: int


def _fresh(view: View, new: Collection[str]) -> list[_Fresh]:
    """The newest results, in call order."""
    cuts, fresh = cuts_in_force(view), []
    for call in (call for call in view.turns[-1].calls if call.id in new):
        result = view.turns[-1].results[call.id]
        text = result.text[: cuts[call.id].characters]
        bare = _cost(call, result, _NOTHING)
        need, least = (
            max(_cost(call, result, ResultCut(length)) - bare, 0)
            for length in (len(text), _extract(len(text)))
        )
        fresh.append(_Fresh(call.id, text, result.media, need, least))
    return fresh


def _taken(view: View, fresh: Sequence[_Fresh]) -> int:
    """The tokens of everything but the texts of the new results: their frames and notes are included."""
    bare = replace(_with(view, {result.call_id: _NOTHING for result in fresh}), limit="")
    return message_tokens(build(bare).messages) + _NOTE


def _cost(call: ToolCall, result: SentResult, cut: ResultCut) -> int:
    return block_tokens(result_block(call, result, cut))


def _extract(characters: int) -> int:
    return characters if characters <= OWN_EXTRACT else EXTRACT_LIMIT


def _with_extracts(view: View, kept: Collection[str], freeing: int) -> tuple[View, int]:
    """The view without the query's thinking, and with the oldest results as extracts, until ``freeing`` tokens are
    free; and how many are. The same view if nothing can be freed."""
    freed = 0 if view.cuts.without_thinking else sum(map(block_tokens, thoughts(view)))
    short = {}
    for turn in view.turns:
        for call in turn.calls:
            if freed >= freeing or call.id in kept:
                continue
            cut = view.cuts.results[call.id]
            extract = ResultCut(_extract(cut.characters))
            if extract != cut:
                result = turn.results[call.id]
                freed += _cost(call, result, cut) - _cost(call, result, extract)
                short[call.id] = extract
    if freed <= 0:
        return view, 0
    return _with(replace(view, cuts=replace(view.cuts, without_thinking=True)), short), freed


def _shared(view: View, fresh: Sequence[_Fresh], left: int) -> dict[str, ResultCut]:
    """The cuts of the new results within what is left: files within half of it, or within what the texts leave."""
    need, least = sum(result.need for result in fresh), sum(result.least for result in fresh)
    files, taken = _files_shared(view, fresh, left - max(min(need, left // 2), least))
    shares = fair_shares([result.need - result.least for result in fresh], left - taken - least)
    return {
        result.call_id: ResultCut(_characters(result, result.least + share), count)
        for result, share, count in zip(fresh, shares, files, strict=True)
    }


def _files_shared(view: View, fresh: Sequence[_Fresh], room: int) -> tuple[list[int], int]:
    """How many files of each new result fit, in order, and their tokens."""
    cuts = cuts_in_force(view)
    counts, taken = [], 0
    for result in fresh:
        media = result.media[: cuts[result.call_id].files]
        counts.append(_files_within(media, room - taken))
        taken += tokens_of_files(media[: counts[-1]])
    return counts, taken


def _file_tokens(view: View, fresh: Sequence[_Fresh]) -> int:
    """The tokens of those files of the new results that fit in a request."""
    cuts = cuts_in_force(view)
    return sum(tokens_of_files(result.media[: cuts[result.call_id].files]) for result in fresh)


def fair_shares(needs: Sequence[int], room: int) -> list[int]:
    """The share of each: small ones get what they need, the others equal shares of the rest."""
    shares = [0] * len(needs)
    left = max(room, 0)
    waiting = len(needs)
    for index in sorted(range(len(needs)), key=needs.__getitem__):
        shares[index] = min(needs[index], left // waiting)
        left -= shares[index]
        waiting -= 1
    return shares


def _characters(result: _Fresh, share: int) -> int:
    """How many characters of a result fit in its share; at least an extract."""
    return max(_characters_within(result.text, result.need, share), _extract(len(result.text)))


def _characters_within(text: str, need: int, share: int) -> int:
    """How many characters of the text fit in its share; all of them if the share covers its need.

    Neutralising makes a text at most a quarter longer: `[ID:` becomes `[ ID:`.
    """
    if need <= share:
        return len(text)
    room = share - FRAME_TOKENS  # the note of a cut has more digits than was estimated
    length = within_tokens(text, room)
    if cautious_tokens(neutralise(text[:length])) > room:
        length = within_tokens(text, room * 4 // 5)
    return max(length, 0)


# ── if the service says that a request is too long ────────────────────────────────────────────────


def _newest_cut_harder(view: View) -> View:
    """The last turn's results cut to half of the request: they are new, so everything else stays cached."""
    fresh = _fresh(view, _newest(view)) if view.turns else []
    left = message_tokens(build(view).messages) // 2 - _taken(view, fresh)
    return _with(view, _shared(view, fresh, left))


def _old_as_extracts(view: View) -> View:
    """All results of earlier turns as extracts, without the query's thinking."""
    return _with_extracts(view, _newest(view), message_tokens(build(view).messages))[0]


def _newest(view: View) -> set[str]:
    return {call.id for call in view.turns[-1].calls} if view.turns else set()


def _least(view: View) -> View:
    """The minimum: the past, the beginning of the query, extracts, no files."""
    view = without_files(view) if build(view).files else view
    query = LEAST_QUERY if len(view.query.content) > LEAST_QUERY else None
    without_thinking = view.cuts.without_thinking or bool(view.turns)
    least = replace(view, cuts=replace(view.cuts, query=query, without_thinking=without_thinking))
    cuts = cuts_in_force(view).items()
    return _with(least, {call_id: ResultCut(_extract(cut.characters)) for call_id, cut in cuts})


ShorteningStep = Callable[["View"], "View"]
STEPS: Final[tuple[ShorteningStep, ...]] = (_newest_cut_harder, _old_as_extracts, _least)
"""The steps, in order, for a request that is too long for the service."""
