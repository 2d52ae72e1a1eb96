"""Digests: the oldest queries are folded into them, so that the past stays within its budget (CONTRACT 6). Pure.

    q1 … q20          ─► d1, ref q1..q20
    d1, q21 … q41     ─► d2, ref q1..q41        d1 is unchanged; on the wire d2 replaces it

The model writes a digest ahead when the past approaches its budget. A query takes it if it must fold, or if the
prompt cache has expired anyway. If a query must fold and no digest is ready, it makes one mechanically.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

from dualtrack.codec import APART, As, stored
from dualtrack.ids import digest_id, kind_of, query_id
from dualtrack.memory.standing import Changes, Standing, asked_in, standing_after
from dualtrack.profiles import PLACEHOLDER
from dualtrack.text import cautious_tokens, clean, neutralise, one_line, preview, within_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.memory.records import QueryTrack, Whole

DIGEST_LIMIT: Final = 4_000
"""Maximum length of a digest in characters."""

_DIGEST_TOKENS: Final = 1_400
"""The tokens of a digest of maximum length with its id; in a script other than Latin, it is cut to these tokens."""

_ID_TOKENS: Final = 20
"""Maximum tokens of its header ``[ID:d3, ref:q1..q41]``."""

AHEAD_SHARE: Final = 0.7
"""The share of the budget from which on a digest is written ahead."""

_LEAST: Final = 60
"""With fewer characters for a query, its text is left out; its number never is."""


@stored
@dataclass(frozen=True, slots=True)
class Digest:
    """``dK``: all queries up to ``through`` in at most 4,000 characters. It never changes.

    ``content`` is the summary, without the user's standing instructions, which come first on the wire.
    """

    number: Annotated[int, APART]
    through: int
    content: Annotated[str, As("text")]
    created_at: Annotated[str, As("at")]
    standing: Standing = field(default_factory=Standing)

    @property
    def ref(self) -> str:
        """``q1..q41``."""
        return f"{query_id(1)}..{query_id(self.through)}"

    @property
    def said(self) -> str:
        """The standing instructions, then the summary, on one line with forged ids neutralised."""
        return " ".join(part for part in (self.standing.text, _line(self.content)) if part)

    @property
    def text(self) -> str:
        """The text on the wire."""
        return f"[ID:{digest_id(self.number)}, ref:{self.ref}] {self.said}"


@dataclass(frozen=True, slots=True)
class DigestDraft:
    """What a digest's writer says: the summary, and the changes of the standing instructions."""

    text: str
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class Past:
    """The past of a query: the digest in force, one written ahead, the tracks after the digest in force."""

    digest: Digest | None
    tracks: tuple[QueryTrack, ...]
    ahead: Digest | None = None
    whole: Mapping[int, Whole] = field(default_factory=lambda: MappingProxyType({}))
    """The queries after it that are sent whole."""


@dataclass(frozen=True, slots=True)
class TrackBudget:
    """``tokens`` is a profile's ``track_tokens``, by the cautious estimate; ``template`` its ``query_template``;
    ``sends_whole``: whether queries of it may be sent whole."""

    tokens: int
    template: str = PLACEHOLDER
    sends_whole: bool = False

    @property
    def half(self) -> int:
        """The tokens that a fold may leave."""
        return self.tokens // 2

    @property
    def room(self) -> int:
        """The tokens for a digest with its id."""
        return min(_DIGEST_TOKENS, self.tokens // 4)

    def is_whole(self, track: QueryTrack) -> bool:
        """Whether the query is sent whole."""
        return self.sends_whole and track.whole_tokens > 0

    def of_track(self, track: QueryTrack) -> int:
        """The tokens of a query: of its track, or of its messages if it is sent whole."""
        if self.is_whole(track):
            return track.whole_tokens
        framed = cautious_tokens(self.template) if self.template != PLACEHOLDER else 0
        return framed + sum(cautious_tokens(block.text) for block in track.blocks)

    def has_room(self, taken: int) -> bool:
        """Whether a past of so many tokens is too small for a digest ahead."""
        return taken < self.tokens * AHEAD_SHARE

    def of(self, digest: Digest | None, tracks: Sequence[QueryTrack]) -> int:
        """The tokens of a digest and tracks."""
        return (cautious_tokens(digest.text) if digest else 0) + sum(map(self.of_track, tracks))


def past_to_send(past: Past, budget: TrackBudget, now: str, *, cold: bool) -> Past:
    """What a new query sends of its past: unchanged, with the digest written ahead, or folded now.

    ``cold``: the past is no longer in the prompt cache, so a fold costs nothing. If the digest written ahead leaves
    too much, more is folded.
    """
    kept = replace(past, ahead=None)
    forced = budget.of(past.digest, past.tracks) > budget.tokens
    if past.ahead and (forced or cold):
        kept = _after(past.ahead, past)
        forced = forced and budget.of(kept.digest, kept.tracks) > budget.half
    if not forced or not kept.tracks:
        return kept
    folded = _to_fold(kept.tracks, budget.half - budget.room, budget)
    digest = digest_of(kept.digest, folded, None, budget, now)
    return _after(digest, kept)


def to_fold_ahead(past: Past, budget: TrackBudget) -> tuple[QueryTrack, ...]:
    """What a digest written now would fold, oldest first; nothing while the past is small or a digest is waiting.

    It folds so much that at least half of the budget will be free after another query like these.
    """
    taken = budget.of(past.digest, past.tracks)
    if past.ahead or not past.tracks or budget.has_room(taken):
        return ()
    last = max(map(budget.of_track, past.tracks))
    leave = min(taken, budget.tokens) - last - budget.half - budget.room
    return _to_fold(past.tracks, leave, budget)


def _to_fold(tracks: Sequence[QueryTrack], leave: int, budget: TrackBudget) -> tuple[QueryTrack, ...]:
    """The oldest tracks, at least one, so that the others take at most ``leave`` tokens."""
    left = sum(map(budget.of_track, tracks))
    folded: list[QueryTrack] = []
    for track in tracks:
        if folded and left <= leave:
            break
        folded.append(track)
        left -= budget.of_track(track)
    return tuple(folded)


def _after(digest: Digest, past: Past) -> Past:
    tracks = tuple(track for track in past.tracks if track.query > digest.through)
    whole = {number: messages for number, messages in past.whole.items() if number > digest.through}
    return Past(digest, tracks, whole=MappingProxyType(whole))


def digest_of(
    base: Digest | None,
    folded: Sequence[QueryTrack],
    written: DigestDraft | None,
    budget: TrackBudget,
    now: str,
) -> Digest:
    """The next digest for the previous one and the newly folded queries (at least one); None: without a model.

    The standing instructions take at most half of its room, and the summary what they leave.
    """
    room = budget.room - _ID_TOKENS
    before, changes = (base.standing if base else Standing()), (written.changes if written else Changes())
    standing = standing_after(before, asked_in(folded), changes, room // 2)
    left = max(room - cautious_tokens(standing.text) - 1, 0)
    limit = min(DIGEST_LIMIT - len(standing.text) - 1, 3 * left)
    text = _line(clean(written.text if written else mechanical_digest(base, folded, limit)))
    return Digest(
        number=base.number + 1 if base else 1,
        through=folded[-1].query,
        content=text[: min(DIGEST_LIMIT - len(standing.text) - 1, within_tokens(text, left))],
        created_at=now,
        standing=standing,
    )


# ── mechanical ────────────────────────────────────────────────────────────────────────────────────


def mechanical_digest(base: Digest | None, folded: Sequence[QueryTrack], limit: int = DIGEST_LIMIT) -> str:
    """A digest without a model: newest queries first and at most length, then as much of the previous digest as fits.

    Queries that do not fit are mentioned only by the range of ids.
    """
    earlier = f" Before: {base.content}" if base else ""
    own = limit - min(len(earlier), limit // 3)
    newest = folded[-max(own // _LEAST, 1) :]
    widths = _widths(len(newest), own)
    pieces = [_piece(track, width) for track, width in zip(newest, widths, strict=True)]
    return f"{' '.join(reversed(pieces))}{earlier}"[:limit]


def _widths(count: int, limit: int) -> list[int]:
    """Characters for each of ``count`` queries, oldest first: a minimum for all, and more for newer ones."""
    extra = limit - count * _LEAST
    steps = count * (count + 1) // 2
    return [_LEAST - 1 + extra * rank // steps for rank in range(1, count + 1)]


def _piece(track: QueryTrack, width: int) -> str:
    """``q7, q7-t1..t3: what was asked – what was answered.`` in at most ``width`` characters."""
    tools = [block for block in track.blocks if kind_of(block.record_id) == "tool"]
    own = query_id(track.query)
    ids = f"{own}, {own}-t1..t{len(tools)}" if len(tools) > 1 else f"{own}, {own}-t1" if tools else own
    said = {kind_of(block.record_id): _line(block.content[: 2 * width]) for block in track.blocks}
    asked, answered = said.get("query", ""), said.get("response", "")
    room = max(width - len(ids) - 5, 0)
    question = preview(asked, max(room // 3, room - len(answered), 1))
    return preview(f"{ids}: {question} – {answered}", width)


def _line(text: str) -> str:
    """The text on one line. Forged ids are neutralised before, because they are no longer recognised on one line."""
    return one_line(neutralise(text))
