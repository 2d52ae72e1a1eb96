"""The conversation of a prompt (CONTRACT 10): what is resent is found, never sent to the model again.

the conversation's name ─────────────────────► that conversation
a chat that it follows: as an exchange that is found
nothing was answered before ─────────────────► a new one
an exchange found, from the newest backwards
    it is the conversation's last ───────────► that conversation
    the same message runs behind it ─────────► that chat
    others follow it ────────────────────────► a fork
the beginning of an answer that was left ────► its conversation
none is found, but the client's own id ──────► the conversation that it has named last
none is found ───────────────────────────────► a new one
exchanges that stand in no conversation are imported: records, without a model call

It is found by reads alone. A fork, an import, the end of a chat that was left come with the chat's admission.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.chat.fork_conversation import is_too_deep
from dualtrack.chat.new_chat import BroughtPast
from dualtrack.clock import iso
from dualtrack.errors import invalid_request, not_found
from dualtrack.ids import is_id, query_id
from dualtrack.plugins.openai.exchanges import (
    ExchangePlace,
    asked_digest,
    best_first,
    equally_good,
    is_cut,
    is_likely,
    is_whole,
    trail_of,
)
from dualtrack.plugins.openai.imports import imported
from dualtrack.plugins.openai.transcript import said_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dualtrack.api.identity import ApiCaller
    from dualtrack.plugins.openai.exchanges import Exchange
    from dualtrack.plugins.openai.prompt import Prompt
    from dualtrack.plugins.openai.store import ExchangeIndex
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.stores import AdmissionStores

LOOKED_UP: Final = 8
"""How many of the newest exchanges are looked up: those behind a found one were edited, cut, or another model's."""
_LEFT: Final = 3
"""How many chats are read that were asked the same as one whose client has left."""


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """``conversation_id``: empty for a new one; ``running``: the chat that has this very message already; ``past``: of
    a new conversation, with ``imported`` as its newest exchanges; ``leaves``: the chat that runs in the conversation,
    and that its client has left; ``is_resent``: the conversation's past is what was resent."""

    conversation_id: str = ""
    running: Chat | None = None
    past: BroughtPast | None = None
    imported: Sequence[Exchange] = ()
    leaves: str = ""
    is_resent: bool = True


@dataclass(frozen=True, slots=True)
class Placing:
    """What finds the conversation of a caller's prompt."""

    stores: AdmissionStores
    index: ExchangeIndex
    identity: ApiCaller

    def place(self, prompt: Prompt, named: str, behind: str = "") -> FoundPlace:
        """The conversation; ``named``: the one that the request names; ``behind``: the chat that it follows. Raises 403
        and 404 for them, 400 for another profile's, 409."""
        if behind or named:
            placed = self._after(prompt, behind) if behind else self._named(prompt, named)
            return replace(placed, is_resent=False)
        if not prompt.exchanges:
            return FoundPlace()
        return self._found(prompt) or self._by_foreign_id(prompt) or self._imported(prompt.exchanges)

    def _by_foreign_id(self, prompt: Prompt) -> FoundPlace | None:
        """The conversation that the client's own id has named, for a history that the client has changed throughout."""
        found = prompt.foreign_id and self.index.named(
            self.identity.user, self.identity.key_id, prompt.foreign_id
        )
        conversation = self._visible(found) if found else None
        if conversation is None or conversation.profile != prompt.model:
            return None
        running = self._running(conversation, prompt)
        return FoundPlace(conversation.conversation_id, running, is_resent=False)

    def _after(self, prompt: Prompt, chat_id: str) -> FoundPlace:
        chat = self.stores.chats.load(self.identity.user, chat_id)
        conversation = self._visible(chat.conversation_id) if chat else None
        if chat is None or conversation is None:
            raise not_found("There is no such response, or it was deleted.")
        self.identity.require_sight(chat.key_id)
        self._require_model(conversation, prompt)
        # calls of that very chat, and their results, are no exchange behind it
        rest = [exchange for exchange in prompt.exchanges if exchange.chat_id != chat_id]
        return self._behind(conversation, chat.query, prompt, rest)

    def _require_model(self, conversation: Conversation, prompt: Prompt) -> None:
        if conversation.profile != prompt.model:
            raise invalid_request(f"model: this conversation's is {conversation.profile}.")

    def _named(self, prompt: Prompt, conversation_id: str) -> FoundPlace:
        is_one = is_id("conversation_id", conversation_id)
        conversation = self._visible(conversation_id) if is_one else None
        if conversation is None:
            raise not_found("There is no such conversation.")
        self.identity.require_sight(conversation.key_id)
        self._require_model(conversation, prompt)
        return FoundPlace(conversation_id, self._running(conversation, prompt))

    def _found(self, prompt: Prompt) -> FoundPlace | None:
        """The place behind the newest exchange that is found. A call's id, which nobody can guess, names its chat: only
        conversations with that chat are looked at behind it."""
        exchanges = prompt.exchanges
        called_at, called = self._called(exchanges)
        for end in range(len(exchanges), max(len(exchanges) - LOOKED_UP, called_at), -1):
            found = self._by_hash(prompt, end, called)
            if found is None and end == len(exchanges):
                found = self._left(prompt, called)
            if found:
                return found
        conversation = self._of_model(called.conversation_id, prompt) if called else None
        if called is None or conversation is None:
            return None
        return self._behind(conversation, called.query, prompt, exchanges[called_at:])

    def _called(self, exchanges: Sequence[Exchange]) -> tuple[int, Chat | None]:
        """The newest chat of this caller's that a call's id names, and how many exchanges there are up to its own."""
        for end in range(len(exchanges), 0, -1):
            chat_id = exchanges[end - 1].chat_id
            chat = self.stores.chats.load(self.identity.user, chat_id) if chat_id else None
            if chat_id:
                return (end, chat) if chat and chat.key_id == self.identity.key_id else (0, None)
        return 0, None

    def _by_hash(self, prompt: Prompt, end: int, called: Chat | None) -> FoundPlace | None:
        """The place behind these exchanges, by the hash of the last of them."""
        exchanges, rest = prompt.exchanges[:end], prompt.exchanges[end:]
        trail = trail_of(exchanges[:-1])
        places = self._noted(prompt, exchanges[-1].digest, trail)
        if not self.identity.may_be_many:
            seen = self._seen(places, prompt, called)
            first = next(seen, None)
            return self._behind(first[1], first[0].query, prompt, rest) if first else None
        whole = [place for place in places if is_whole(place, trail)]
        alike = equally_good(whole, trail) or [place for place in places if is_likely(place, exchanges)]
        found = list(self._seen(alike, prompt, called))
        if not found or (len(found) > 1 and not whole):
            return None
        (place, conversation), *others = found
        # where several could go on, which of them is meant is not known: none of them gets the message
        is_ambiguous = any(other.queries == at.query for at, other in others)
        return self._behind(conversation, place.query, prompt, rest, is_fork=is_ambiguous)

    def _noted(self, prompt: Prompt, digest: str, trail: Sequence[str]) -> list[ExchangePlace]:
        """Where an exchange stands, the best place first."""
        found = self.index.find(self.identity.user, scope_of(self.identity, prompt), digest)
        return best_first((ExchangePlace(*entry) for entry in found), trail)

    def _seen(
        self, places: Iterable[ExchangePlace], prompt: Prompt, called: Chat | None
    ) -> Iterator[tuple[ExchangePlace, Conversation]]:
        """The places in conversations that may go on, with the chat that was called in their past."""
        for place in places:
            conversation = self._of_model(place.conversation_id, prompt)
            if conversation and (called is None or _holds(conversation, place.query, called)):
                yield place, conversation

    def _of_model(self, conversation_id: str, prompt: Prompt) -> Conversation | None:
        conversation = self._visible(conversation_id)
        return conversation if conversation and conversation.profile == prompt.model else None

    def _left(self, prompt: Prompt, called: Chat | None) -> FoundPlace | None:
        """Where the newest exchange stands if its client has left before the end of the answer. A chat that still runs
        is to be cancelled: nobody waits for it any more. Where many people may ask, it must be the only one, with its
        whole past."""
        newest, trail = prompt.exchanges[-1], trail_of(prompt.exchanges[:-1])
        places, is_strict = self._noted(prompt, asked_digest(newest), trail), self.identity.may_be_many
        if is_strict:
            places = [place for place in places if is_whole(place, trail)]
        cut = (
            (place, conversation, chat)
            for place, conversation in self._seen(places[:_LEFT], prompt, called)
            if (chat := self._cut_at(conversation, place, newest))
        )
        found = list(cut) if is_strict else [each for each in [next(cut, None)] if each]
        if len(found) != 1 or (is_strict and len(places) > _LEFT):
            return None
        ((place, conversation, chat),) = found
        leaves = chat.chat_id if conversation.lease == chat.chat_id else ""
        return replace(self._behind(conversation, place.query, prompt, ()), leaves=leaves)

    def _cut_at(self, conversation: Conversation, place: ExchangePlace, newest: Exchange) -> Chat | None:
        """The chat at this place, if it has said what the exchange's answer begins with."""
        stores, user = self.stores, self.identity.user
        history = stores.history.across(conversation.ancestry)
        chat_id = history.chat_of_query(user, place.conversation_id, place.query)
        chat = stores.chats.load(user, chat_id) if chat_id else None
        if chat is None or (self.identity.may_be_many and ran_tools(chat)):
            return None
        return chat if is_cut(newest, said_in(stores.log(chat).events())) else None

    def _behind(
        self,
        conversation: Conversation,
        query: int,
        prompt: Prompt,
        rest: Sequence[Exchange],
        *,
        is_fork: bool = False,
    ) -> FoundPlace:
        """The conversation whose last query is this one, with the rest behind it; ``is_fork``: in any case a fork."""
        if not rest and conversation.queries == query + 1:
            running = self._running(conversation, prompt)
            if running:
                return FoundPlace(conversation.conversation_id, running)
        if conversation.queries == query and not (rest or is_fork):
            return FoundPlace(conversation.conversation_id)
        if is_too_deep(conversation, query):
            return self._imported(prompt.exchanges)
        return self._imported(rest, conversation.conversation_id, query)

    def _running(self, conversation: Conversation, prompt: Prompt) -> Chat | None:
        """The chat that runs in the conversation, if it is about this very message of the same program."""
        stores, user = self.stores, self.identity.user
        chat_id = conversation.running_chat(stores.clock())
        chat = stores.chats.load(user, chat_id) if chat_id else None
        if chat is None or chat.status != "running":
            return None
        query = stores.history.record(user, conversation.conversation_id, query_id(chat.query))
        if query is None or query.content != prompt.message or len(query.attachments) != len(prompt.files):
            return None
        return chat if stores.chats.instructions(chat) == prompt.instructions else None

    def _visible(self, conversation_id: str) -> Conversation | None:
        conversation = self.stores.conversations.find(self.identity.user, conversation_id)
        return None if conversation is None or conversation.is_being_deleted else conversation

    def _imported(self, exchanges: Sequence[Exchange], source: str = "", through: int = 0) -> FoundPlace:
        """A new conversation with these exchanges as its last queries, behind those that it shares as a fork."""
        records = imported(exchanges, through, iso(self.stores.clock()))
        return FoundPlace(past=BroughtPast(source, through, records), imported=exchanges[-len(records) :])


def scope_of(identity: ApiCaller, prompt: Prompt) -> str:
    """Within what exchanges are found by their hashes: a key's own, and those of the person whom its client names."""
    if not prompt.person:
        return identity.key_id
    return f"{identity.key_id} {hashlib.sha256(prompt.person.encode()).hexdigest()[:16]}"


def ran_tools(chat: Chat) -> bool:
    """Whether the client may have run tools in this chat. What they returned is nothing that texts prove: where many
    people may ask, such a chat is found by its calls alone."""
    return bool(chat.client_tools and chat.pauses)


def _holds(conversation: Conversation, query: int, chat: Chat) -> bool:
    """Whether the chat is in the conversation's past, up to the query."""
    home = conversation.ancestry.home(conversation.conversation_id, chat.query)
    return chat.query <= query and home == chat.conversation_id
