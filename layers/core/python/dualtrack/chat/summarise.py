"""The step after the answer: all summaries of the query at once, then `done` (DESIGN 2.6).

It cannot turn a delivered answer into a failure: what the model does not sum up within the time gets
a mechanical extract.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.end_chat import finish
from dualtrack.errors import ModelRefused, ModelUnavailable, Superseded
from dualtrack.memory.summaries import SummaryRequest, summary_call, summary_requests
from dualtrack.models.thinking import Thinking
from dualtrack.storage.dynamo import Lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.models.protocol import Model
    from dualtrack.requests import ChatRef
    from dualtrack.storage.stores import Stores

SUMMARIES_SECONDS: Final = 80.0
_CALL_SECONDS: Final = 40.0
_ATTEMPTS: Final = 3
_PARALLEL: Final = 8


@dataclass(frozen=True, slots=True)
class SummariseDeps:
    """What the step needs beside the stores."""

    stores: Stores
    model: Model
    model_name: str
    sleep: Callable[[float], None] = time.sleep
    thinking: Thinking = field(default_factory=Thinking)


def summarise(ref: ChatRef, deps: SummariseDeps) -> dict[str, Any]:
    """Write the query's short track and close the chat. Doing it again does nothing."""
    chat = deps.stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status != "answered":
        return {}
    records = deps.stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    made = _summarise_all(summary_requests(records), deps)
    summaries = {request.record_id: text for request, text, _ in made}
    try:
        finish(deps.stores, chat, records, summaries, sum(tokens for _, _, tokens in made))
    except (Superseded, Lost):
        return {}
    return {}


def _summarise_all(
    requests: tuple[SummaryRequest, ...], deps: SummariseDeps
) -> list[tuple[SummaryRequest, str, int]]:
    if not requests:
        return []
    deadline = time.monotonic() + SUMMARIES_SECONDS
    with ThreadPoolExecutor(min(_PARALLEL, len(requests))) as pool:
        made = list(pool.map(lambda request: _summarise_one(request, deps, deadline), requests))
    return [(request, text, tokens) for request, (text, tokens) in zip(requests, made, strict=True)]


def _summarise_one(request: SummaryRequest, deps: SummariseDeps, deadline: float) -> tuple[str, int]:
    """The summary and its tokens; empty if the model would not or could not in time."""
    for attempt in range(_ATTEMPTS):
        left = deadline - time.monotonic()
        if left < 1:
            break
        try:
            asked = summary_call(request, deps.model_name, deps.thinking)
            return deps.model.complete(asked, min(_CALL_SECONDS, left))
        except ModelRefused:
            break
        except ModelUnavailable:
            deps.sleep(min(0.5 * 2**attempt, max(left, 0)))
    return "", 0
