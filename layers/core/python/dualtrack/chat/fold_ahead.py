"""The next digest, written by the model before a query needs it (DESIGN 2.16).

It is made after the chat is done, so it delays no answer. If it is missing, because the model failed, the step died or
the next query was faster, that query makes a mechanical digest.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from dualtrack.chat.move_credits import charge_aside
from dualtrack.chat.past import track_budget
from dualtrack.clock import iso
from dualtrack.credits.account import AccountChange, Cost
from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.memory.digest_writing import digest_call, written_by_model
from dualtrack.memory.digests import Past, digest_of, to_fold_ahead
from dualtrack.memory.left_out import as_sent
from dualtrack.models.prices import rates_of
from dualtrack.models.receipt_data import SideCalls
from dualtrack.storage.dynamo import ConditionFailed
from dualtrack.storage.ledger import with_account
from dualtrack.storage.past_writes import write_ahead

if TYPE_CHECKING:
    from dualtrack.credits.account import Account
    from dualtrack.memory.digests import TrackBudget
    from dualtrack.memory.summaries import SummarySettings
    from dualtrack.models.protocol import Model
    from dualtrack.profiles import Profile
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import PaidStores

_CALL_SECONDS: Final = 25.0
"""Time that the step has left after its summaries."""


def fold_ahead(
    stores: PaidStores, chat: Chat, profile: Profile, model: Model, settings: SummarySettings
) -> None:
    """Write the digest for a later query, if the past up to this chat approaches its budget."""
    stores, budget = stores.across(chat.ancestry), track_budget(profile)
    if _is_small(stores, chat, budget):
        return
    digest, ahead = stores.digests.newest(chat.user, chat.conversation_id)
    after = digest.through if digest else 0
    if ahead or after >= chat.query:
        return
    tracks = as_sent(stores.history.tracks(chat.user, chat.conversation_id, chat.query, after))
    folded = to_fold_ahead(Past(digest, tracks), budget)
    if not folded or len(tracks) < chat.query - after:
        return
    try:
        request = digest_call(digest, folded, settings.model, settings.thinking)
        at, clock = iso(stores.clock()), time.monotonic()
        said, usage = model.complete(request, _CALL_SECONDS)
    except (ModelRefused, ModelUnavailable):
        return
    if by_model := written_by_model(said):
        written = digest_of(digest, folded, by_model, budget, iso(stores.clock()))
        with contextlib.suppress(
            ConditionFailed
        ):  # another run wrote it, or the conversation is being deleted
            seconds = round(time.monotonic() - clock, 3)
            rates = rates_of(settings.model, usage.prompt_tokens, at)
            fold = SideCalls(at, settings.model, seconds, 1, 1, usage, rates=rates)
            kept = chat.costs.title if chat.costs else 0
            charge_aside(stores, chat, fold, partial(write_ahead, stores, chat, written, fold), kept)


def _is_small(stores: PaidStores, chat: Chat, budget: TrackBudget) -> bool:
    """Whether the past that the chat has sent, with its own query, is too small for a digest, so that it need not be
    read again. What follow-ups have added since is theirs to fold."""
    if chat.pin is None or not chat.pin.tokens:
        return False
    own = stores.history.track(chat.user, chat.conversation_id, chat.query)
    return own is not None and budget.has_room(chat.pin.tokens + budget.of_track(own))


def free_rest(stores: PaidStores, chat: Chat) -> None:
    """End what a chat by a key still holds for a digest or a title that was not written."""

    def free(account: Account) -> AccountChange:
        is_held = chat.chat_id in account.holds
        return (
            account.charge(chat.chat_id, now, Cost(0, chat.key_id, 0, chat.profile))
            if is_held
            else AccountChange(account)
        )

    now = stores.clock()
    with_account(stores.ledger, chat.payer, free, stores.ledger.commit)
