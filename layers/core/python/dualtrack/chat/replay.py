"""The past as the policies `window` and `tool_rounds` send it: read newest first, only as far as it is sent.

Records of ended queries never change, so every turn and retry of a query reads and sends the same text.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.errors import Gone
from dualtrack.frozen import freeze
from dualtrack.ids import query_id, response_id
from dualtrack.memory.blocks import SentResult
from dualtrack.memory.policies import (
    PastCall,
    Wire,
    extra_tokens,
    older_left_out,
    past_query,
    records_sent,
    replayed,
    rounds_room,
    tokens_of_query,
    tool_rounds,
    window,
    with_texts_cut,
    within_budget,
    without_left_out,
)
from dualtrack.memory.recall import RETRIEVE_FULL_CONTEXT
from dualtrack.memory.records import files_named
from dualtrack.memory.view import Replay
from dualtrack.profiles import PLACEHOLDER, TRACK_TOKENS, WINDOW
from dualtrack.tools.full_context import result_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dualtrack.memory.policies import PastQuery, Round
    from dualtrack.memory.records import Record
    from dualtrack.profiles import Profile
    from dualtrack.storage.stores import ToolStores

MOST_QUERIES: Final = 200
"""Maximum number of past queries read: short ones might never fill the budget."""

_WINDOW_LOOKS: Final = 5
"""Maximum number of reads, each of as many queries as the window has: queries without an answer do not count."""

_RESULTS_AT_ONCE: Final = 8
"""Tool results in memory before it is known whether they are sent; each has up to 2 MB."""


def wire_of(profile: Profile, offered: Collection[str]) -> Wire:
    """How a profile sends the past, given the names of the tools that it offers."""
    return Wire(
        PLACEHOLDER if profile.history.as_written else profile.query_template,
        profile.result_limit,
        profile.track_tokens or TRACK_TOKENS,
        reads_back=RETRIEVE_FULL_CONTEXT in offered,
        has_tools=bool(offered),
    )


def read_replay(
    stores: ToolStores,
    user: str,
    conversation_id: str,
    before: int,
    profile: Profile,
    offered: Collection[str],
    left_out: int = 0,
) -> Replay:
    """The messages of the past of the query ``before``; ``left_out``: the query whose results it leaves out. Raises
    `Gone`."""
    wire = wire_of(profile, offered)
    sent = past_queries(stores, user, conversation_id, before, profile, wire, left_out)
    messages = replayed(sent, wire)
    oldest = sent[0].number if sent else before
    if profile.history.policy != WINDOW and oldest > 1:
        messages = [older_left_out(oldest - 1, wire), *messages]
    newest = max((query.number for query in sent if query.response), default=0)
    return Replay(freeze(messages), any(query.query.names_files for query in sent), newest)


def records_to_send(
    stores: ToolStores, user: str, conversation_id: str, before: int, profile: Profile
) -> dict[int, list[Record]]:
    """What the query ``before`` sends of the past, by query, as the API shows it; empty if that is being deleted."""
    wire = wire_of(profile, (*profile.tools, *profile.mcp))
    try:
        sent = past_queries(stores, user, conversation_id, before, profile, wire)
    except Gone:
        return {}
    return {query.number: records_sent(query, wire) for query in sent}


def past_queries(
    stores: ToolStores,
    user: str,
    conversation_id: str,
    before: int,
    profile: Profile,
    wire: Wire,
    left_out: int = 0,
) -> tuple[PastQuery, ...]:
    """The past queries that the query ``before`` sends, oldest first. Raises `Gone`."""
    if profile.history.policy == WINDOW:
        exchanges = _exchanges(stores, user, conversation_id, before, profile.history.exchanges)
        queries = without_left_out(exchanges, left_out)
    else:
        said = without_left_out(_said(stores, user, conversation_id, before, wire), left_out)
        queries = _with_rounds(stores, user, conversation_id, said, profile.history.rounds, wire)
    return within_budget(queries, wire)


# ── window ────────────────────────────────────────────────────────────────────────────────────────


def _exchanges(
    stores: ToolStores, user: str, conversation_id: str, before: int, exchanges: int
) -> tuple[PastQuery, ...]:
    """The queries of the window, read by key: tool calls are not read."""
    queries: tuple[PastQuery, ...] = ()
    end = before
    for _ in range(_WINDOW_LOOKS):
        first = max(end - exchanges, 1)
        if len(queries) == exchanges or first == end:
            break
        queries = window((*_answered(stores, user, conversation_id, range(first, end)), *queries), exchanges)
        end = first
    return queries


def _answered(
    stores: ToolStores, user: str, conversation_id: str, numbers: Sequence[int]
) -> Iterator[PastQuery]:
    ids = [record_id for number in numbers for record_id in (query_id(number), response_id(number))]
    records = {record.record_id: record for record in stores.history.records(user, conversation_id, ids)}
    for number in numbers:
        own = [records.get(query_id(number)), records.get(response_id(number))]
        yield _required_query([record for record in own if record])


def _required_query(records: Sequence[Record]) -> PastQuery:
    query = past_query(records)
    if query is None:
        raise Gone(records[0].record_id if records else "query")
    return query


# ── tool_rounds ───────────────────────────────────────────────────────────────────────────────────


def _with_rounds(
    stores: ToolStores,
    user: str,
    conversation_id: str,
    queries: Sequence[PastQuery],
    rounds: int,
    wire: Wire,
) -> tuple[PastQuery, ...]:
    """The queries with the results of the latest rounds, as far as they fit in the budget."""
    whole = tool_rounds(queries, 0)
    room = rounds_room(whole, wire)
    newest = [turn for query in reversed(queries) for turn in reversed(query.turns) if turn.calls][:rounds]
    results: dict[str, SentResult] = {}
    for part in _in_parts(newest):
        results |= _results(
            stores, user, conversation_id, [past.call.id for turn in part for past in turn.calls]
        )
        room -= sum(extra_tokens(_with(turn, results), wire) for turn in part)
        if room < 0:
            break
    with_results = [
        replace(query, turns=tuple(_with(turn, results) for turn in query.turns)) for query in queries
    ]
    return tool_rounds(with_results, rounds)


def _said(
    stores: ToolStores, user: str, conversation_id: str, before: int, wire: Wire
) -> tuple[PastQuery, ...]:
    """Read newest first until the texts fill the budget even when cut; returned in order."""
    queries: list[PastQuery] = []
    left = wire.tokens
    for records in itertools.islice(stores.history.newest_first(user, conversation_id, before), MOST_QUERIES):
        query = _required_query(records)
        queries.append(query)
        left -= tokens_of_query(with_texts_cut(query, wire), wire)
        if left < 0:
            break
    return tuple(reversed(queries))


def _in_parts(newest: Sequence[Round]) -> Iterator[list[Round]]:
    """Batches of rounds, each with about as many results as may be in memory; no round is split."""
    part: list[Round] = []
    for turn in newest:
        part.append(turn)
        if sum(len(batched.calls) for batched in part) >= _RESULTS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _with(turn: Round, results: Mapping[str, SentResult]) -> Round:
    if not all(past.call.id in results for past in turn.calls):
        return turn
    return replace(turn, calls=tuple(PastCall(past.call, results[past.call.id]) for past in turn.calls))


def _results(
    stores: ToolStores, user: str, conversation_id: str, record_ids: Sequence[str]
) -> dict[str, SentResult]:
    records = stores.history.records(user, conversation_id, record_ids)
    return {record.record_id: _result(stores, user, conversation_id, record) for record in records}


def _result(stores: ToolStores, user: str, conversation_id: str, record: Record) -> SentResult:
    """A past call's result. Its files are named but not sent."""
    if record.call is None:
        raise ValueError(record.record_id)
    text = result_text(stores, user, conversation_id, record)
    return SentResult(text, record.call.is_error, named=files_named(record).strip())
