"""Small tasks that chat pages have done beside a conversation (CONTRACT 10): titles, tags, follow-ups. How such a
request is told, and what it asks. Pure.

Open WebUI: one user message that begins ``### Task:``, not streamed; a header by its configuration, ``{{TASK}}``.
LibreChat: a model of its own for titles (``titleModel``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import invalid_request
from dualtrack.profiles import UTILITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dualtrack.plugins.openai.prompt import Prompt

TASK_CHARACTERS: Final = 16_000
TASKS_A_MINUTE: Final = 10

_BEGINS: Final = "### Task:"
_UNFILLED: Final = "{{"
"""A header that its client has not filled in says nothing."""


def is_task(body: Mapping[str, Any], headers: Iterable[str]) -> bool:
    """Whether a request is one for a small task; ``headers``: the values of those that name tasks."""
    if body.get("model") == UTILITY.name:
        return True
    named = (value.strip() for value in headers)
    return any(value and not value.startswith(_UNFILLED) for value in named) or _has_the_form(body)


def _has_the_form(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages")
    if body.get("stream") or not isinstance(messages, list) or len(messages) != 1:
        return False
    message = messages[0] if isinstance(messages[0], dict) else {}
    content = message.get("content")
    return message.get("role") == "user" and isinstance(content, str) and content.startswith(_BEGINS)


def task_of(prompt: Prompt) -> Prompt:
    """The prompt of a task: all that is said is its one message; tools and files are left out. Raises 400."""
    before = [text for exchange in prompt.exchanges for text in (exchange.user, exchange.assistant)]
    message = "\n\n".join(filter(None, (*before, prompt.message)))
    if not message:
        raise invalid_request("messages: the last one is empty.")
    if len(message) + len(prompt.instructions) > TASK_CHARACTERS:
        raise invalid_request(f"messages: a task takes {TASK_CHARACTERS:,} characters in all.")
    wanted = prompt.wanted and replace(prompt.wanted, must_call=False, tools=None)
    return replace(
        prompt, message=message, files=(), exchanges=(), results=(), tools=(), wanted=wanted, is_task=True
    )
