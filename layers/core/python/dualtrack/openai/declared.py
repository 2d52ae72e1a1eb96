"""The routes of OpenAI's API as they are declared (CONTRACT 10): `dualtrack.openai.app` serves them, and the list of
doors has them. Pure, and light to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.api.route import CHAT_READERS, OPENAI_PATH
from dualtrack.openai.fields import COMPLETION
from dualtrack.openai.fields import RESPONSE as RESPONSE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.openai.fields import RequestField
    from dualtrack.vocabulary import Scope

CONVERSATION: Final = "X-Dualtrack-Conversation"
"""The header that names a conversation, in requests and in answers."""

TASK: Final = "X-Dualtrack-Task"
"""The header that names a task; a stage's setting lists others."""

RETRIES: Final = "x-stainless-retry-count"
"""How often OpenAI's own clients have sent this request before."""


@dataclass(frozen=True, slots=True)
class OpenAIRoute:
    """An operation below `OPENAI_PATH`. ``scopes``: an API key needs one of them; ``parameters``: of the query and the
    headers; ``fields``: of the body, with what becomes of each. A client may send any others."""

    method: str
    path: str
    scopes: tuple[Scope, ...]
    parameters: tuple[str, ...] = ()
    fields: Mapping[str, RequestField] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def whole_path(self) -> str:
        """The path from the address on."""
        return OPENAI_PATH + self.path


MODELS: Final = OpenAIRoute("GET", "/models", CHAT_READERS)
MODEL: Final = OpenAIRoute("GET", "/models/{model}", CHAT_READERS)
COMPLETE: Final = OpenAIRoute(
    "POST", "/chat/completions", ("chat",), (CONVERSATION, TASK, RETRIES), fields=COMPLETION
)
RESPOND: Final = OpenAIRoute("POST", "/responses", ("chat",), (CONVERSATION, RETRIES), fields=RESPONSE_FIELDS)
RESPONSE: Final = OpenAIRoute("GET", "/responses/{response_id}", CHAT_READERS, ("stream", "starting_after"))
CANCEL: Final = OpenAIRoute("POST", "/responses/{response_id}/cancel", ("chat",))

ROUTES: Final = tuple(route for route in vars().values() if isinstance(route, OpenAIRoute))
