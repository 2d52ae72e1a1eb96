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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.chat.fork_conversation import is_too_deep
from dualtrack.chat.new_chat import BroughtPast
from dualtrack.clock import iso
from dualtrack.errors import invalid_request, not_found
from dualtrack.ids import is_id, query_id
from dualtrack.openai.exchanges import ExchangePlace, asked_digest, best_first, is_cut, trail_of
from dualtrack.openai.imports import imported
from dualtrack.openai.transcript import said_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.api.identity import ApiCaller
    from dualtrack.openai.exchanges import Exchange
    from dualtrack.openai.prompt import Prompt
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.exchanges import ExchangeIndex
    from dualtrack.storage.stores import AdmissionStores

LOOKED_UP: Final = 8
"""How many of the newest exchanges are looked up: those behind a found one were edited, cut, or another model's."""
_LEFT: Final = 3
"""How many chats are read that were asked the same as one whose client has left."""


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """``conversation_id``: empty for a new one; ``running``: the chat that has this very message already; ``past``: of
    a new conversation, with ``imported`` as its newest exchanges; ``leaves``: the chat that runs in the conversation,
    and that its client has left."""

    conversation_id: str = ""
    running: Chat | None = None
    past: BroughtPast | None = None
    imported: Sequence[Exchange] = ()
    leaves: str = ""


@dataclass(frozen=True, slots=True)
class Placing:
    """What finds the conversation of a caller's prompt."""

    stores: AdmissionStores
    index: ExchangeIndex
    identity: ApiCaller

    def place(self, prompt: Prompt, named: str, behind: str = "") -> FoundPlace:
        """The conversation; ``named``: the one that the request names; ``behind``: the chat that it follows. Raises 403
        and 404 for them, 400 for another profile's, 409."""
        if behind:
            return self._after(prompt, behind)
        if named:
            return self._named(prompt, named)
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
        return FoundPlace(conversation.conversation_id, self._running(conversation, prompt))

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
        """The place behind the newest exchange that is found."""
        exchanges = prompt.exchanges
        for end in range(len(exchanges), max(len(exchanges) - LOOKED_UP, 0), -1):
            trail = trail_of(exchanges[: end - 1])
            for place in self._places(exchanges[end - 1], trail):
                conversation = self._visible(place.conversation_id)
                if conversation and conversation.profile == prompt.model:
                    return self._behind(conversation, place.query, prompt, exchanges[end:])
            if end == len(exchanges) and (left := self._left(prompt)):
                return left
        return None

    def _places(self, exchange: Exchange, trail: Sequence[str]) -> Iterator[ExchangePlace]:
        """Where the exchange stands, the best place first; last the chat that its calls name, which need not have been
        answered."""
        user, key_id = self.identity.user, self.identity.key_id
        found = self.index.find(user, key_id, exchange.digest)
        yield from best_first((ExchangePlace(*entry) for entry in found), trail)
        chat = self.stores.chats.load(user, exchange.chat_id) if exchange.chat_id else None
        if chat and chat.key_id == key_id:
            yield ExchangePlace(chat.conversation_id, chat.query)

    def _left(self, prompt: Prompt) -> FoundPlace | None:
        """Where the newest exchange stands if its client has left before the end of the answer. A chat that still runs
        is to be cancelled: nobody waits for it any more."""
        stores, user, newest = self.stores, self.identity.user, prompt.exchanges[-1]
        found = self.index.find(user, self.identity.key_id, asked_digest(newest.user))
        for place in best_first((ExchangePlace(*entry) for entry in found), trail_of(prompt.exchanges[:-1]))[
            :_LEFT
        ]:
            conversation = self._visible(place.conversation_id)
            if conversation is None or conversation.profile != prompt.model:
                continue
            history = stores.history.across(conversation.ancestry)
            chat_id = history.chat_of_query(user, place.conversation_id, place.query)
            chat = stores.chats.load(user, chat_id) if chat_id else None
            if chat and is_cut(newest, said_in(stores.log(chat).events())):
                leaves = chat.chat_id if conversation.lease == chat.chat_id else ""
                return replace(self._behind(conversation, place.query, prompt, ()), leaves=leaves)
        return None

    def _behind(
        self, conversation: Conversation, query: int, prompt: Prompt, rest: Sequence[Exchange]
    ) -> FoundPlace:
        """The conversation whose last query is this one, with the rest behind it."""
        if not rest and conversation.queries == query + 1:
            running = self._running(conversation, prompt)
            if running:
                return FoundPlace(conversation.conversation_id, running)
        if conversation.queries == query and not rest:
            return FoundPlace(conversation.conversation_id)
        if is_too_deep(conversation, query):
            return self._imported(prompt.exchanges)
        return self._imported(rest, conversation.conversation_id, query)

    def _running(self, conversation: Conversation, prompt: Prompt) -> Chat | None:
        """The chat that runs in the conversation, if it is about this very message."""
        stores, user = self.stores, self.identity.user
        chat_id = conversation.running_chat(stores.clock())
        chat = stores.chats.load(user, chat_id) if chat_id else None
        if chat is None or chat.status != "running":
            return None
        query = stores.history.record(user, conversation.conversation_id, query_id(chat.query))
        return chat if query and query.content == prompt.message else None

    def _visible(self, conversation_id: str) -> Conversation | None:
        conversation = self.stores.conversations.find(self.identity.user, conversation_id)
        return None if conversation is None or conversation.is_being_deleted else conversation

    def _imported(self, exchanges: Sequence[Exchange], source: str = "", through: int = 0) -> FoundPlace:
        """A new conversation with these exchanges as its last queries, behind those that it shares as a fork."""
        records = imported(exchanges, through, iso(self.stores.clock()))
        return FoundPlace(past=BroughtPast(source, through, records), imported=exchanges[-len(records) :])
