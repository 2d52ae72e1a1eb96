"""The chat of a request (CONTRACT 10): the one that it repeats, the one that runs already, or a new one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.chat.agent import Deployed
from dualtrack.chat.decide_calls import decide_calls
from dualtrack.chat.start_chat import NewChat, Repeat, first_chat, start_chat
from dualtrack.errors import invalid_request
from dualtrack.openai.client_tools import decisions, turn_of
from dualtrack.openai.place import Placing
from dualtrack.openai.prompt import refuse_unknown_model
from dualtrack.profiles import all_profiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.api.identity import Identity
    from dualtrack.chat.cost_hold import CostSettings
    from dualtrack.openai.client_tools import PastCall
    from dualtrack.openai.prompt import Prompt
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.exchanges import ExchangeIndex
    from dualtrack.storage.stores import ApiStores
    from dualtrack.vocabulary import DecidedBy

_FILES_ALONE: Final = "(See the attached file.)"


@dataclass(frozen=True, slots=True)
class Admitted:
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

    def models(self, identity: Identity) -> list[str]:
        """The models that the caller may name: the profiles."""
        allowed = identity.key.profiles if identity.key else frozenset()
        return [name for name in all_profiles() if not allowed or name in allowed]

    def admit(
        self, identity: Identity, prompt: Prompt, raw: bytes, named: str, *, is_retry: bool
    ) -> Admitted:
        """The chat, and where the answer begins in it. ``raw``: the body; ``named``: the conversation that the header
        names; ``is_retry``: the client says that it has sent this request before. Raises `ApiError`."""
        refuse_unknown_model(prompt.model, self.models(identity))
        if prompt.results:
            return self._decided(identity, prompt.results)
        return Admitted(self._chat(identity, prompt, raw, named, is_retry=is_retry))

    def _decided(self, identity: Identity, results: Sequence[PastCall]) -> Admitted:
        """The chat that has waited for these results, and goes on with them; the same ones again change nothing."""
        stores, chat_id = self.stores, next(call.chat_id for call in results if call.chat_id)
        loaded = stores.chats.load_with_turns(identity.user, chat_id)
        turn = turn_of(results, loaded[1]) if loaded else None
        if loaded is None or turn is None:
            raise invalid_request("messages: no chat waits for the tools' results at the end.")
        identity.require_sight(loaded[0].key_id)
        by: DecidedBy = "key" if identity.key else "user"
        wanted = decisions(results, turn)
        chat = decide_calls(stores, self.executions, loaded[0], wanted, by, Deployed(""))
        return Admitted(chat, turn.number)

    def _chat(self, identity: Identity, prompt: Prompt, raw: bytes, named: str, *, is_retry: bool) -> Chat:
        repeat = _repeat(identity, raw, named)
        first = first_chat(self.stores, self.executions, identity.user, repeat) if is_retry else None
        if first and first.status != "failed":
            return first
        placed = Placing(self.stores, self.index, identity).place(prompt, named)
        if placed.running:
            return placed.running
        new = NewChat(
            identity.user,
            prompt.message or _FILES_ALONE,
            placed.conversation_id,
            "" if placed.conversation_id else prompt.model,
            prompt.files,
            payer=identity.payer,
            key_id=identity.key_id,
            cancels_pause=True,
            instructions=prompt.instructions,
            tools=prompt.tools,
            output=prompt.output,
        )
        return start_chat(
            self.stores,
            self.executions,
            new,
            repeat,
            costs=self.costs,
            upgrade_message=self.upgrade_message,
        )


def _repeat(identity: Identity, raw: bytes, named: str) -> Repeat:
    """By which a retry of this request is recognised: the same body by the same key."""
    digest = hashlib.sha256(raw).hexdigest()
    return Repeat(f"openai {identity.key_id} {named} {digest}", digest, is_first=True)
