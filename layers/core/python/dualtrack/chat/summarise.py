"""The step after the answer: the query's track, by the notes in its turns or by a call for each summary, then `done`,
then perhaps a digest, the conversation's title and a block of the search index (DESIGN 2.6).

It cannot turn a delivered answer into a failure: a record that has no note, or that the model does not summarise in
time, gets a mechanical extract.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dualtrack.chat.agent import AgentDeployment, agent_of
from dualtrack.chat.cost_hold import affordable
from dualtrack.chat.end_chat import finish
from dualtrack.chat.fold_ahead import fold_ahead, free_rest
from dualtrack.chat.make_title import make_title
from dualtrack.chat.message_before import with_last_sent
from dualtrack.chat.noted_query import noted_query
from dualtrack.chat.regroup import regroup
from dualtrack.clock import iso
from dualtrack.errors import Gone, ModelRefused, ModelUnavailable, Superseded
from dualtrack.memory.records import QueryTrack
from dualtrack.memory.summaries import SummaryRequest, fitted, summary_call, summary_requests, track_of
from dualtrack.models.prices import call_rates
from dualtrack.models.protocol import ignore
from dualtrack.models.receipt_data import SideCalls
from dualtrack.models.turn import Usage
from dualtrack.profiles import whole_characters
from dualtrack.settings import DEFAULTS
from dualtrack.storage.dynamo import ConditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dualtrack.chat.agent import Agent
    from dualtrack.knowledge.local_embedder import LocalEmbedder
    from dualtrack.memory.records import Record
    from dualtrack.memory.summaries import SummarySettings
    from dualtrack.models.protocol import Model
    from dualtrack.requests import ChatRef
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import SummaryStores

T = TypeVar("T")

SUMMARIES_SECONDS: Final = 80.0
_CALL_SECONDS: Final = 40.0
_GOES_ON_BEFORE: Final = 85.0
"""Seconds after which the step has no time for a title, nor to regroup the search index."""

_ATTEMPTS: Final = 3
_PARALLEL: Final = 8


class _Tries:
    """Asks the model while there is time, and counts the requests, from any thread."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._deadline = time.monotonic() + SUMMARIES_SECONDS
        self._lock = threading.Lock()
        self.count = 0

    def ask(self, call: Callable[[float], T]) -> T | None:
        """The answer to a call with the seconds that are left; up to three tries. Raises `ModelRefused`."""
        for attempt in range(_ATTEMPTS):
            left = self._deadline - time.monotonic()
            if left < 1:
                break
            with self._lock:
                self.count += 1
            try:
                return call(left)
            except ModelUnavailable:
                self._sleep(min(0.5 * 2**attempt, max(left, 0)))
        return None


@dataclass(frozen=True, slots=True)
class _Made:
    """Summaries by record id, and the usage of their calls. ``model``: the model called; ``calls``: those answered."""

    texts: Mapping[str, str]
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    calls: int = 0


def summarise(
    ref: ChatRef,
    stores: SummaryStores,
    serve: Callable[[str], Model],
    settings: SummarySettings,
    provider: str = DEFAULTS.dualtrack_provider,
    made: Callable[[SideCalls], None] = ignore,
    sleep: Callable[[float], None] = time.sleep,
    embedder: Callable[[], LocalEmbedder | None] = lambda: None,
) -> dict[str, Any]:
    """Write the query's summarised track and close the chat. Idempotent.

    No model is asked for a track that a follow-up has made final, or that is never sent: other policies than
    `dual_track` send records. Where notes came with the answer, none is asked for summaries either. ``serve`` opens the
    model of a provider; ``provider``: the deployment's; ``made`` is called with what the summaries took, and the title,
    by the run that has recorded it. ``embedder``: see `regroup`.
    """
    chat = stores.chats.load(ref.user, ref.chat_id)
    if chat is None or chat.status != "answered":
        if chat and chat.status == "done" and chat.key_id:
            free_rest(stores, chat)  # a run before this one may have died in between
        return {}
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query)
    deployed = AgentDeployment(settings.model, settings.thinking, provider, settings.model)
    pinned = _agent(stores, chat, deployed)
    agent = pinned if pinned and pinned.profile.history.is_summarised else None
    model = serve(agent.provider) if agent else None
    is_final = stores.history.track(chat.user, chat.conversation_id, chat.query) is not None
    at, clock, tries = iso(stores.clock()), time.monotonic(), _Tries(sleep)
    whole = agent.profile.history.whole_characters if agent else whole_characters(chat.profile)
    is_asked = agent is not None and agent.profile.history.calls_for_summaries and not is_final
    requests, found = summary_requests(records, whole) if is_asked else (), _Made({})
    if model and requests:
        paid = affordable(requests, settings, chat.costs.summaries) if chat.costs else requests
        found = _one_by_one(paid, model, settings, tries) if paid else found
    seconds, missing = (
        round(time.monotonic() - clock, 3),
        len(requests) - sum(map(bool, found.texts.values())),
    )
    rates = call_rates(None, found.model, found.usage, found.calls, at) if found.calls else None
    spent = SideCalls(at, found.model, seconds, found.calls, tries.count, found.usage, missing, rates)
    kept = chat.costs.digest + chat.costs.title if chat.costs and pinned else 0
    summaries = {record_id: fitted(text, settings.characters) for record_id, text in found.texts.items()}
    noted = _noted(stores, chat, agent, records) if agent and not is_final else None
    track, also = noted or (_track(stores, chat, records, summaries, whole), ())
    try:
        finish(stores, chat, records, track, spent, also, kept)
    except (Superseded, ConditionFailed):
        return {}
    made(spent)
    if agent and model:
        fold_ahead(stores, chat, agent.profile, model, settings)
    if pinned and time.monotonic() - clock < _GOES_ON_BEFORE:
        make_title(stores, chat, records, partial(serve, pinned.provider), settings, made)
    if kept:
        free_rest(stores, chat)
    if time.monotonic() - clock < _GOES_ON_BEFORE:
        regroup(stores, chat, embedder)
    return {}


def _agent(stores: SummaryStores, chat: Chat, deployed: AgentDeployment) -> Agent | None:
    """The chat's agent; None if it no longer exists."""
    try:
        return agent_of(stores.agents, chat, deployed)
    except Gone:
        return None


def _noted(
    stores: SummaryStores, chat: Chat, agent: Agent, records: tuple[Record, ...]
) -> tuple[QueryTrack, Sequence[Write]] | None:
    """The query's track by the notes in its turns, and what is written with it. None where summaries are called for, or
    if something of it is gone."""
    if not agent.profile.history.in_turn or not records:
        return None
    try:
        loaded = stores.chats.load_with_turns(chat.user, chat.chat_id)
        return loaded and noted_query(
            stores.across(chat.ancestry), chat, loaded[1], agent.profile, records, iso(stores.clock())
        )
    except Gone:
        return None


def _track(
    stores: SummaryStores, chat: Chat, records: tuple[Record, ...], summaries: Mapping[str, str], whole: int
) -> QueryTrack:
    """The query's track with these summaries. There are no records if the conversation was deleted meanwhile: then the
    closed log rejects the next write."""
    if not records:
        return QueryTrack(chat.query, ())
    return with_last_sent(track_of(records, summaries, whole, iso(stores.clock())), chat, records)


def _one_by_one(
    requests: Sequence[SummaryRequest], model: Model, settings: SummarySettings, tries: _Tries
) -> _Made:
    """One call a record. The text is empty where the model refused or did not finish in time."""

    def summary(request: SummaryRequest) -> tuple[str, Usage]:
        body = summary_call(request, settings.model, settings.thinking, settings.characters)
        try:
            answer = tries.ask(lambda left: model.complete(body, min(_CALL_SECONDS, left)))
        except ModelRefused:
            answer = None
        return answer or ("", Usage())

    with ThreadPoolExecutor(min(_PARALLEL, len(requests))) as pool:
        answers = list(pool.map(summary, requests))
    texts = {request.record_id: text for request, (text, _) in zip(requests, answers, strict=True)}
    usages = [usage for _, usage in answers if usage.tokens]
    return _Made(texts, sum(usages, Usage()), settings.model, len(usages))
