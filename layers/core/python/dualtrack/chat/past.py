"""The past of a query: read as far as it is sent, folded if too long, then pinned (CONTRACT 6, DESIGN 2.16)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.clock import epoch_of, iso
from dualtrack.errors import Contended, Gone, Superseded
from dualtrack.memory.digests import Past, TrackBudget, past_to_send
from dualtrack.memory.left_out import as_sent, left_out_by
from dualtrack.models.prices import CACHE_SECONDS
from dualtrack.models.windows import LEAST_WINDOW
from dualtrack.profiles import TRACK_TOKENS
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.past_writes import write_past

if TYPE_CHECKING:
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat, Pin
    from dualtrack.storage.stores import ToolStores

_TRIES: Final = 6

NOTED_TOKENS: Final = 56_000
"""Cautious tokens, some 43,000 by the service's count: where every record is short by its note or extract, folding
earlier costs more than reading on."""

RUNNING_SHARE: Final = 4
"""The part of a call, as its reciprocal, that queries that are sent whole leave to the running one."""


def track_budget(profile: Profile) -> TrackBudget:
    """The token budget of the past in this profile. If it has none of its own and notes come with the answers, it is
    what `context_tokens` leaves beside an answer and the running query's own part, at most `NOTED_TOKENS`; in the
    smallest window of a model."""
    history, tokens = profile.history, profile.track_tokens or TRACK_TOKENS
    if history.in_turn and not profile.track_tokens:
        context = min(profile.context_tokens, LEAST_WINDOW)
        left = context - profile.max_tokens - context // RUNNING_SHARE
        tokens = max(tokens, min(left, NOTED_TOKENS))
    return TrackBudget(tokens, profile.query_template, history.in_turn)


def read_past(stores: ToolStores, chat: Chat, profile: Profile, *, is_fixed: bool) -> Past:
    """The digest and the tracks after it: the pinned ones, or for a new query the current ones.

    Only what follows the digest is read, however long the conversation is. Raises `Gone`.
    """
    user, conversation_id = chat.user, chat.conversation_id
    digest, ahead = None, None
    if chat.pin and chat.pin.digest:
        digest = stores.digests.find(user, conversation_id, chat.pin.digest)
        if digest is None:
            raise Gone(conversation_id)
    elif chat.pin is None and not is_fixed:
        digest, ahead = stores.digests.newest(user, conversation_id)
    after = digest.through if digest else 0
    stored = stores.history.tracks(user, conversation_id, chat.query - 1, after)
    left_out = left_out_by(stored, chat.pin.left_out if chat.pin else 0)
    tracks = as_sent(stored, chat.pin.left_out if chat.pin else 0)
    if not profile.history.in_turn:
        return Past(digest, tracks, ahead)
    first = chat.pin.whole_from or chat.query if chat.pin else 0
    whole = stores.history.whole(user, conversation_id, [track for track in tracks if track.query >= first])
    kept = {number: messages for number, messages in whole.items() if number not in left_out}
    return Past(digest, tracks, ahead, MappingProxyType(kept))


def fix_past(stores: ToolStores, chat: Chat, past: Past, profile: Profile, pin: Pin) -> tuple[Past, Chat]:
    """What the query sends of its past, and the chat with its pin: ``pin`` with the digest that is sent.

    A fold is one transaction: the new digest, the mark that it is in force, the pin. The first writer wins: it may be
    another first attempt of this query, or the summariser with the same digest. Raises `Superseded`, `Gone` and, if
    the chat has ended, `ChatClosed`.
    """
    budget = track_budget(profile)
    for _ in range(_TRIES):
        now = stores.clock()
        sent = past_to_send(past, budget, iso(now), cold=_is_cold(past, now))
        digest, tokens = sent.digest.number if sent.digest else 0, budget.of(sent.digest, sent.tracks)
        pin = replace(pin, digest=digest, whole_from=min(sent.whole, default=0), tokens=tokens)
        if sent.digest == past.digest:
            fixed = stores.chats.pin(chat, pin)
            is_ours = fixed.pin == pin
            return (sent if is_ours else read_past(stores, fixed, profile, is_fixed=True)), fixed
        try:
            _take(stores, chat, past, sent, pin)
        except ConditionFailed:
            chat = _reloaded(stores, chat)
            past = read_past(stores, chat, profile, is_fixed=False)
            if chat.pin:
                return past, chat
        else:
            return sent, replace(chat, pin=pin)
    raise Contended("Other runs folded the past at each attempt.")


def _take(stores: ToolStores, chat: Chat, past: Past, sent: Past, pin: Pin) -> None:
    """Put the digest in force, and write it if it is not stored yet."""
    user, conversation_id = chat.user, chat.conversation_id
    if sent.digest is None:
        raise ValueError(conversation_id)
    writes = [
        stores.chats.pin_action(chat, pin),
        stores.digests.taken_action(user, conversation_id, pin.digest, chat.query),
    ]
    if sent.digest != past.ahead:
        writes.append(stores.digests.put_action(user, conversation_id, sent.digest))
    write_past(stores, chat, writes)


def _reloaded(stores: ToolStores, chat: Chat) -> Chat:
    current = stores.chats.load(chat.user, chat.chat_id)
    if current is None:
        raise Gone(chat.chat_id)
    if current.pin is None and current.turn:
        raise Superseded(f"turn {current.turn}")
    return current


def _is_cold(past: Past, now: float) -> bool:
    """Whether the prompt cache has expired since the last call. The last track was written after that call."""
    written = [block.created_at for track in past.tracks[-1:] for block in track.blocks]
    return bool(written) and now - epoch_of(max(written)) > CACHE_SECONDS
