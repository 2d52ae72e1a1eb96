"""What a request asks of a chat that it begins, before anything is admitted or written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.chat.attached_files import File
    from dualtrack.frozen import JsonObject
    from dualtrack.memory.records import Record
    from dualtrack.models.wanted import Wanted
    from dualtrack.tools.client_tools import ClientTools


@dataclass(frozen=True, slots=True)
class BroughtPast:
    """The past of a conversation that is made with the chat: the first ``through`` queries of the conversation
    ``source``, which it shares as a fork does, and behind them the queries that the request itself brings
    (``imported``: the records of each, numbered on)."""

    source: str = ""
    through: int = 0
    imported: tuple[tuple[Record, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class NewChat:
    """A user's request; ``profile`` empty: that of the conversation, else the default. ``payer``: whose credits pay;
    empty: the user's; ``key_id``: the API key of the request; ``cancels_pause``: whether a
    chat of the conversation that waits for decisions is cancelled first; ``instructions``: what the client's program
    says to this message alone."""

    user: str
    message: str
    conversation_id: str = ""
    profile: str = ""
    files: tuple[File, ...] = ()
    payer: str = ""
    key_id: str = ""
    cancels_pause: bool = False
    output: JsonObject | None = None
    """The JSON Schema of the answer, checked before."""
    tools: ClientTools = ()
    """Those that its client runs."""
    unattended: bool = False
    """Whether nobody waits for it."""
    facets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What a plug-in that asks keeps with the chat, and with the conversation that it begins."""
    instructions: str = ""
    echo: str = ""
    """What an answer in another API's form says again of its request, as JSON."""
    continues: Literal["", "cut", "any"] = ""
    """In place of a message: the conversation's last answer goes on, `cut` if it reached its limit of tokens, `any`
    whatever ended it."""
    wanted: Wanted | None = None
    """What the client asks of the answer; None for nothing."""
    is_task: bool = False
    """Whether it is a small task (`dualtrack.profiles.UTILITY`), whose conversation is in no list."""
    past: BroughtPast | None = None
    """Of a new conversation; then there is no ``conversation_id``."""
    leaves: str = ""
    """A running chat whose client has left it for this one: it is cancelled first."""

    @property
    def base_id(self) -> str:
        """The conversation that goes on, or is forked; empty for neither."""
        return self.past.source if self.past else self.conversation_id


@dataclass(frozen=True, slots=True)
class Repeat:
    """An Idempotency-Key and the fingerprint of its request's body. ``is_first``: no earlier request counts as this
    one; it is what later ones repeat."""

    key: str
    fingerprint: str
    is_first: bool = False


def fingerprint(body: bytes) -> str:
    """A hash of the body."""
    return hashlib.sha256(body).hexdigest()
