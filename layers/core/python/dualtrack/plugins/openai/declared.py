"""The routes of OpenAI's API (CONTRACT 10), which `app` serves."""

from __future__ import annotations

from typing import Final

from dualtrack.api.route import CHAT_READERS
from dualtrack.api.streamed import StreamedRoute

PATH: Final = "/openai/v1"

CONVERSATION: Final = "X-Dualtrack-Conversation"
"""The header that names a conversation, in requests and in answers."""

TASK: Final = "X-Dualtrack-Task"
"""The header that names a task; a stage's setting lists others."""

RETRIES: Final = "x-stainless-retry-count"
"""How often OpenAI's own clients have sent this request before."""

MODELS: Final = StreamedRoute("GET", "/models", CHAT_READERS, for_owner=True)
"""For its owner, as the next one: a chat page asks for the models before anybody speaks."""
MODEL: Final = StreamedRoute("GET", "/models/{model}", CHAT_READERS, for_owner=True)
COMPLETE: Final = StreamedRoute("POST", "/chat/completions", ("chat",), (CONVERSATION, TASK, RETRIES))
RESPOND: Final = StreamedRoute("POST", "/responses", ("chat",), (CONVERSATION, RETRIES))
RESPONSE: Final = StreamedRoute("GET", "/responses/{response_id}", CHAT_READERS, ("stream", "starting_after"))
CANCEL: Final = StreamedRoute("POST", "/responses/{response_id}/cancel", ("chat",))

ROUTES: Final = tuple(route for route in vars().values() if isinstance(route, StreamedRoute))
