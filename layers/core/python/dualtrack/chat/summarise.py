"""The step after the answer: all summaries of the query at once, then `done`, then perhaps a digest (DESIGN 2.6).

It cannot turn a delivered answer into a failure: a record that the model does not summarise in time gets
a mechanical extract.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dualtrack.chat.agent import agent_of
from dualtrack.chat.end_chat import finish
from dualtrack.chat.fold_ahead import fold_ahead
from dualtrack.chat.summarise_jointly import joint_request, joint_summaries, new_mark
from dualtrack.clock import iso
from dualtrack.errors import Gone, ModelRefused, ModelUnavailable, Superseded
from dualtrack.memory.summaries import SummaryRequest, fitted, summary_call, summary_requests
from dualtrack.models.protocol import ignore
from dualtrack.models.providers import ANTHROPIC
from dualtrack.models.spent import Side
from dualtrack.models.turn import Usage
from dualtrack.storage.dynamo import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.memory.summaries import SummarySettings
    from dualtrack.models.protocol import Model
    from dualtrack.models.turn import ModelReply
    from dualtrack.requests import ChatRef
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import QueryStores

T = TypeVar("T")

SUMMARIES_SECONDS: Final = 80.0
_CALL_SECONDS: Final = 40.0
_JOINT_SECONDS: Final = 60.0
_ATTEMPTS: Final = 3
_PARALLEL: Final = 8


@dataclass(frozen=True, slots=True)
class SummariseDeps:
    """What the step needs beside the stores. ``model`` is that of ``settings``."""

    stores: QueryStores
    model: Model
    settings: SummarySettings
    sleep: Callable[[float], None] = time.sleep
    provider: str = ANTHROPIC
    served_by: Callable[[str], Model] | None = None
    """Opens the model of another provider than ``provider``, for a chat that began with that one."""
    made: Callable[[Side], None] = ignore
    """Called with what the summaries took, by the run that has recorded them."""


class _Tries:
    """Counts requests to the model, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self) -> None:
        """Count a request."""
        with self._lock:
            self.count += 1


@dataclass(frozen=True, slots=True)
class _Made:
    """Summaries by record id, and the usage of their calls. ``model``: the model called; ``calls``: those answered."""

    texts: Mapping[str, str]
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    calls: int = 0


def summarise(ref: ChatRef, deps: SummariseDeps) -> dict[str, Any]:
    """Write the query's summarised track and close the chat. Idempotent.

    No model is asked for a track that a follow-up has made final, or that is never sent: other policies than
    `dual_track` send records.
    """
    chat = deps.stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status != "answered":
        return {}
    records = deps.stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    agent = _agent_if_summarised(chat, deps)
    if agent and agent.provider != deps.provider and deps.served_by:
        deps = replace(deps, model=deps.served_by(agent.provider))
    is_final = deps.stores.history.track(chat.user, chat.conversation_id, chat.query) is not None
    at, clock, tries = iso(deps.stores.clock()), time.monotonic(), _Tries()
    requests = summary_requests(records) if agent and not is_final else ()
    made = _make(chat, agent, requests, deps, tries) if agent else _Made({})
    seconds, missing = round(time.monotonic() - clock, 3), len(requests) - sum(map(bool, made.texts.values()))
    spent = Side(at, made.model, seconds, made.calls, tries.count, made.usage, missing)
    summaries = {record_id: fitted(text, deps.settings.characters) for record_id, text in made.texts.items()}
    try:
        finish(deps.stores, chat, records, summaries, spent)
    except (Superseded, Lost):
        return {}
    deps.made(spent)
    if agent:
        fold_ahead(deps.stores, chat, agent.profile, deps.model, deps.settings)
    return {}


def _agent_if_summarised(chat: Chat, deps: SummariseDeps) -> Agent | None:
    """The chat's agent, if its policy sends summaries; None also if the agent no longer exists."""
    try:
        agent = agent_of(deps.stores.agents, chat, deps.settings.model, deps.settings.thinking, deps.provider)
    except Gone:
        return None
    return agent if agent.profile.history.is_summarised else None


def _make(
    chat: Chat, agent: Agent, requests: tuple[SummaryRequest, ...], deps: SummariseDeps, tries: _Tries
) -> _Made:
    """All summaries of the query: by one call on the cached prefix if that costs less, else one call a record."""
    if not requests:
        return _Made({})
    deadline = time.monotonic() + SUMMARIES_SECONDS
    try:
        jointly = _jointly(chat, agent, requests, deps, deadline, tries)
    except ModelRefused:  # a rejected request costs nothing
        jointly = None
    return jointly or _one_by_one(requests, deps, deadline, tries)


def _jointly(
    chat: Chat,
    agent: Agent,
    requests: Sequence[SummaryRequest],
    deps: SummariseDeps,
    deadline: float,
    tries: _Tries,
) -> _Made | None:
    mark = new_mark()
    request = joint_request(deps.stores, chat, agent, requests, mark, deps.settings, deps.sleep)
    if request is None:
        return None

    def ask(seconds: float) -> ModelReply:
        return deps.model.stream(request, ignore, min(_JOINT_SECONDS, seconds))

    reply = _tried(ask, deps, deadline, tries)
    if reply is None:
        return _Made({}, model=agent.model)
    return _Made(joint_summaries(reply, mark, requests), reply.usage, agent.model, 1)


def _one_by_one(
    requests: Sequence[SummaryRequest], deps: SummariseDeps, deadline: float, tries: _Tries
) -> _Made:
    with ThreadPoolExecutor(min(_PARALLEL, len(requests))) as pool:
        answers = list(pool.map(lambda request: _summarise_record(request, deps, deadline, tries), requests))
    texts = {request.record_id: text for request, (text, _) in zip(requests, answers, strict=True)}
    usages = [usage for _, usage in answers if usage.tokens]
    return _Made(texts, sum(usages, Usage()), deps.settings.model, len(usages))


def _summarise_record(
    request: SummaryRequest, deps: SummariseDeps, deadline: float, tries: _Tries
) -> tuple[str, Usage]:
    """The summary and its usage; empty if the model refused or did not finish in time."""
    body = summary_call(request, deps.settings.model, deps.settings.thinking, deps.settings.characters)

    def ask(seconds: float) -> tuple[str, Usage]:
        return deps.model.complete(body, min(_CALL_SECONDS, seconds))

    try:
        return _tried(ask, deps, deadline, tries) or ("", Usage())
    except ModelRefused:
        return "", Usage()


def _tried(ask: Callable[[float], T], deps: SummariseDeps, deadline: float, tries: _Tries) -> T | None:
    """The model's answer, with up to three tries while there is time. Raises `ModelRefused`."""
    for attempt in range(_ATTEMPTS):
        left = deadline - time.monotonic()
        if left < 1:
            break
        tries.add()
        try:
            return ask(left)
        except ModelUnavailable:
            deps.sleep(min(0.5 * 2**attempt, max(left, 0)))
    return None
