"""The chat of a request (CONTRACT 10): the one that it repeats, the one that runs already, or a new one."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from dualtrack.api.rate_limit import count_within
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.decide_calls import decide_calls, take_decisions
from dualtrack.chat.new_chat import NewChat, Repeat
from dualtrack.chat.start_chat import first_chat, start_chat
from dualtrack.clock import epoch_of
from dualtrack.errors import ApiError, invalid_request
from dualtrack.ids import query_id
from dualtrack.models.wanted import Wanted
from dualtrack.plugins.openai.client_tools import decisions, turn_of
from dualtrack.plugins.openai.completions import usage_of
from dualtrack.plugins.openai.exchanges import SHORT, TRAIL, Exchange, asked_digest, trail_of
from dualtrack.plugins.openai.place import LOOKED_UP, FoundPlace, Placing, ran_tools, scope_of
from dualtrack.plugins.openai.prompt import refuse_unknown_model
from dualtrack.plugins.openai.store import Noted
from dualtrack.plugins.openai.utility import TASKS_A_MINUTE, task_of
from dualtrack.profiles import UTILITY, all_profiles
from dualtrack.storage.chats import chat_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.api.identity import ApiCaller
    from dualtrack.chat.cost_hold import CostSettings
    from dualtrack.chat.decide_calls import CallDecision
    from dualtrack.plugins.openai.client_tools import ResentCall
    from dualtrack.plugins.openai.prompt import Prompt
    from dualtrack.plugins.openai.store import ExchangeIndex
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat, RecordedTurn
    from dualtrack.storage.dynamo import Action
    from dualtrack.storage.stores import ApiStores
    from dualtrack.vocabulary import DecidedBy

RETRIED_SECONDS: Final = 30 * 60
"""OpenAI's clients wait for ten minutes, and try twice again."""
_FILES_ALONE: Final = "(See the attached file.)"


@dataclass(frozen=True, slots=True)
class AdmittedChat:
    """A chat, and the turn behind which the answer to this request begins: that whose calls it brings the results
    of."""

    chat: Chat
    after: int = 0


@dataclass(frozen=True, slots=True)
class Admission:
    """What admits chats. ``costs``, ``upgrade_message``: as `start_chat` has them."""

    stores: ApiStores
    index: ExchangeIndex
    executions: Executions
    costs: CostSettings
    upgrade_message: str = ""

    def models(self, identity: ApiCaller) -> list[str]:
        """The models that the caller may name: the profiles, and the one for small tasks."""
        allowed = identity.key.profiles if identity.key else frozenset()
        return [*(name for name in all_profiles() if not allowed or name in allowed), UTILITY.name]

    def admit(
        self,
        identity: ApiCaller,
        prompt: Prompt,
        raw: bytes,
        named: str,
        *,
        is_retry: bool,
        behind: str = "",
        echo: str = "",
    ) -> AdmittedChat:
        """The chat, and where the answer begins in it. ``raw``: the body; ``named``: the conversation that the request
        names; ``behind``: the chat that it follows; ``is_retry``: the client says that it has sent this request before;
        ``echo``: as in `NewChat`. Raises `ApiError`."""
        refuse_unknown_model(prompt.model, self.models(identity))
        if prompt.model == UTILITY.name:
            prompt = task_of(prompt)
        prompt = _known_by(identity, prompt)
        if prompt.results:
            admitted = self._decided(identity, prompt)
            if echo:
                self.stores.chats.keep_echo(admitted.chat, admitted.after, echo)
            return admitted
        repeat = _repeat(identity, raw, named)
        first = first_chat(self.stores, self.executions, identity.user, repeat) if is_retry else None
        if first and self._is_retried(first):
            return AdmittedChat(first)
        placed = self._placed(identity, prompt, named, behind)
        # a retry that comes before what it repeats is what that one becomes
        repeat = replace(repeat, is_first=not is_retry or first is not None)
        return AdmittedChat(placed.running or self._chat(identity, prompt, placed, repeat, echo))

    def _is_retried(self, first: Chat) -> bool:
        """Whether a retry means this chat: it did not fail, it is not long ago, and nobody has gone on behind it."""
        conversation = self.stores.conversations.find(first.user, first.conversation_id)
        is_newest = conversation is not None and conversation.queries == first.query
        is_recent = epoch_of(first.created_at) > self.stores.clock() - RETRIED_SECONDS
        return first.status != "failed" and is_newest and is_recent

    def _decided(self, identity: ApiCaller, prompt: Prompt) -> AdmittedChat:
        """The chat that has waited for these results, and goes on with them; the same ones again change nothing."""
        chat, turn, wanted = self._waiting(identity, prompt.results)
        if chat.status == "paused":
            self.stores.chats.keep_wanted(chat, turn.number, prompt.wanted or Wanted())
        by = _decided_by(identity)
        decided = decide_calls(self.stores, self.executions, chat, wanted, by, AgentDeployment(""))
        return AdmittedChat(decided, turn.number)

    def _waiting(
        self, identity: ApiCaller, results: Sequence[ResentCall]
    ) -> tuple[Chat, RecordedTurn, Sequence[CallDecision]]:
        """The chat that asked for these results, in which turn, and what they decide. Raises 400, 403."""
        stores, chat_id = self.stores, next(call.chat_id for call in results if call.chat_id)
        loaded = stores.chats.load_with_turns(identity.user, chat_id)
        turn = turn_of(results, loaded[1]) if loaded else None
        if loaded is None or turn is None:
            raise invalid_request("messages: no chat waits for the tools' results at the end.")
        identity.require_sight(loaded[0].key_id)
        return loaded[0], turn, decisions(results, turn)

    def _keep_results(self, identity: ApiCaller, prompt: Prompt) -> None:
        """Results that come with the user's next message: the chat that waits for them has them, its other calls are
        declined, and it ends there. What cannot be decided any more changes nothing."""
        newest = prompt.exchanges[-1] if prompt.exchanges else None
        if newest is None or not any(call.chat_id and call.result is not None for call in newest.calls):
            return
        chat = self.stores.chats.load(identity.user, newest.chat_id)
        if chat is None or chat.status != "paused":
            return
        with contextlib.suppress(ApiError):
            chat, _, wanted = self._waiting(identity, newest.calls)
            by = _decided_by(identity)
            decided = take_decisions(self.stores, chat, wanted, by, AgentDeployment(""))
            cancel_chat(self.stores, self.executions, decided)

    def _chat(
        self, identity: ApiCaller, prompt: Prompt, placed: FoundPlace, repeat: Repeat, echo: str
    ) -> Chat:
        is_new = not placed.conversation_id and not (placed.past and placed.past.source)
        new = NewChat(
            identity.user,
            "" if prompt.continues else prompt.message or _FILES_ALONE,
            placed.conversation_id,
            prompt.model if is_new else "",
            prompt.files,
            payer=identity.payer,
            key_id=identity.key_id,
            cancels_pause=True,
            instructions=prompt.instructions,
            tools=prompt.tools,
            output=prompt.output,
            echo=echo,
            continues="any" if prompt.continues else "",
            wanted=prompt.wanted,
            is_task=prompt.is_task,
            past=placed.past,
            leaves=placed.leaves,
        )
        return start_chat(
            self.stores,
            self.executions,
            new,
            repeat,
            costs=self.costs,
            upgrade_message=self.upgrade_message,
            payable=partial(self._keep_results, identity, prompt),
            noted=partial(self._noted, identity, prompt, placed),
        )

    def _noted(self, identity: ApiCaller, prompt: Prompt, placed: FoundPlace, chat: Chat) -> Sequence[Action]:
        """By what later requests find the chat, and the exchanges that are imported with it."""
        if prompt.is_task:
            return ()
        index, now, past, scope = (
            self.index,
            self.stores.clock(),
            prompt.exchanges,
            scope_of(identity, prompt),
        )
        known = [
            index.imported_actions(
                chat, chat.query - back, past[-back].digest, Noted(scope, trail_of(past[:-back])), now
            )
            for back in range(1, min(LOOKED_UP, len(placed.imported)) + 1)
        ]
        trail = trail_of(past) if placed.is_resent else self._trail_before(chat)
        said = (
            chat.chat_id if prompt.continues else prompt.message
        )  # nothing was said by which it could be found
        digest = asked_digest(Exchange(said, "", files=prompt.marks))
        asked = index.asked_actions(chat, digest, Noted(scope, trail, files=prompt.marks), now)
        named = index.name_actions(chat, prompt.foreign_id, now) if prompt.foreign_id else ()
        return [*chain(*known), *asked, *named]

    def _placed(self, identity: ApiCaller, prompt: Prompt, named: str, behind: str) -> FoundPlace:
        """Where the message stands; a small task stands alone, and there are few a minute."""
        if not prompt.is_task:
            return Placing(self.stores, self.index, identity).place(prompt, named, behind)
        count_within(self.stores.requests, identity.user, int(self.stores.clock()), TASKS_A_MINUTE, "task#")
        return FoundPlace()

    def _trail_before(self, chat: Chat) -> tuple[str, ...]:
        """The exchanges before a chat whose client has named its conversation, as they were noted; empty if that is
        not known."""
        history = self.stores.history.across(chat.ancestry)
        before = (
            history.chat_of_query(chat.user, chat.conversation_id, chat.query - 1) if chat.query > 1 else ""
        )
        noted = self.index.answered(chat_partition(chat.user, before)) if before else None
        return (*noted.trail, noted.own)[-TRAIL:] if noted else ()

    def note(self, chat: Chat, said: str, prompt: Prompt | None = None) -> None:
        """Note the chat's exchange for requests that resend it. ``said``: all that it has answered; ``prompt``: of the
        request that began it."""
        asked = self.stores.history.record(chat.user, chat.conversation_id, query_id(chat.query))
        if chat.profile == UTILITY.name or asked is None:
            return
        message = "" if asked.content == _FILES_ALONE else asked.content
        noted = self.index.asked(chat)
        exchange = Exchange(message, said, files=noted.files)
        if prompt and prompt.continues:
            begun, *_ = prompt.exchanges[-1:]
            exchange = Exchange(begun.user, begun.assistant + said, files=begun.files)
            noted = replace(noted, trail=noted.trail[:-1], before=len(prompt.exchanges) - 1)
        digest = exchange.digest
        is_found = not (chat.key_id and chat.payer == chat.user and ran_tools(chat))
        noted = replace(noted, own=digest[:SHORT])
        self.index.note(chat, digest, noted, self.stores.clock(), is_found=is_found)

    def note_late(self, chat: Chat, said: str) -> None:
        """The same for a client that reads later what it was answered; once."""
        if self.index.answered(chat.pk) is None:
            self.note(chat, said)

    def now(self, chat: Chat) -> Chat:
        """The chat as it is now."""
        return self.stores.chats.load(chat.user, chat.chat_id) or chat

    def usage(self, chat: Chat, after: int, until: int) -> dict[str, Any]:
        """The usage of the answer behind the turn ``after`` up to the turn ``until``; ``chat``: as it is now."""
        if not after and chat.turn <= until:
            return usage_of(chat, ())
        _, turns = self.stores.chats.load_with_turns(chat.user, chat.chat_id) or (None, ())
        return usage_of(chat, (turn for turn in turns if not after < turn.number <= until))


def _known_by(identity: ApiCaller, prompt: Prompt) -> Prompt:
    """The prompt as this caller's histories are told apart: by files, too, where many people may ask."""
    if identity.may_be_many:
        return prompt
    exchanges = tuple(replace(exchange, files=()) for exchange in prompt.exchanges)
    return replace(prompt, exchanges=exchanges, marks=(), person="")


def _decided_by(identity: ApiCaller) -> DecidedBy:
    return "key" if identity.key else "user"


def _repeat(identity: ApiCaller, raw: bytes, named: str) -> Repeat:
    """By which a retry of this request is recognised: the same body by the same key."""
    digest = hashlib.sha256(raw).hexdigest()
    return Repeat(f"openai {identity.key_id} {named} {digest}", digest, is_first=True)
