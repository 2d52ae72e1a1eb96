"""The chat of a request (CONTRACT 10): the one that it repeats, the one that runs already, or a new one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.chat.start_chat import NewChat, Repeat, first_chat, start_chat
from dualtrack.openai.place import Placing
from dualtrack.openai.prompt import refuse_unknown_model
from dualtrack.profiles import all_profiles

if TYPE_CHECKING:
    from dualtrack.api.identity import Identity
    from dualtrack.chat.cost_hold import CostSettings
    from dualtrack.openai.prompt import Prompt
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.exchanges import ExchangeIndex
    from dualtrack.storage.stores import ApiStores

_FILES_ALONE: Final = "(See the attached file.)"


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

    def chat(self, identity: Identity, prompt: Prompt, raw: bytes, named: str, *, is_retry: bool) -> Chat:
        """The chat. ``raw``: the body; ``named``: the conversation that the header names; ``is_retry``: the client says
        that it has sent this request before. Raises `ApiError`."""
        refuse_unknown_model(prompt.model, self.models(identity))
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
