"""How the past of a conversation is sent: policies by name, which profiles choose (DESIGN 5, PROFILES 1 and 3).

    dual_track    the summarised track; it only grows at its end, so earlier requests stay cached prefixes
    window        the last exchanges in full, without tools
    tool_rounds   every query, interim text and response in full; only the last tool rounds with their results

Pure. The last two send records, which are read newest first and only as far as their budget goes
(chat/replay.py); this module decides what is cut or left out, oldest first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import freeze, thaw
from dualtrack.ids import parse_record_id, query_id
from dualtrack.memory.blocks import Message, SentResult, fitted, result_block, text_block, user_message
from dualtrack.memory.estimate import message_tokens
from dualtrack.memory.left_out import LEFT_OUT, declined_block, is_declined, results_block
from dualtrack.memory.records import Record, ToolCallDetail, block_of
from dualtrack.memory.sending import ResultCut
from dualtrack.memory.summaries import STOPPED
from dualtrack.models.turn import ToolCall
from dualtrack.profiles import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dualtrack.memory.records import QueryTrack, TrackBlock

LONG_TEXT: Final = 2_000
"""Length to which a past text is cut if it does not fit."""

_NAME_ONLY: Final = "(The details of this tool call are left out here.)"
_NAME_AND_ID: Final = "(The details of this tool call are left out here: retrieve_full_context with the id {id} gives its result.)"
_CUT: Final = "\n\n(Cut after {limit} of {length} characters.{read_on})"
_READ_ON: Final = ' Read on with retrieve_full_context {{"id": "{id}", "offset": {limit}}}.'
_OLDER: Final = "(The queries up to q{last} of this conversation are left out here.{read_back})"
_READ_BACK: Final = " retrieve_full_context gives their records by id, such as q{last} and q{last}-r."
_NOTE_TOKENS: Final = 60


# ── dual_track ────────────────────────────────────────────────────────────────────────────────────


def dual_track(tracks: Sequence[QueryTrack], template: str) -> list[list[Message]]:
    """The query and its tool summaries in the user's role, the response's summary in the assistant's."""
    return [_track_messages(track, template) for track in tracks]


def in_template(query: TrackBlock, template: str) -> TrackBlock:
    """A query's block as the model reads it: in the template, after its id. What is left out is no question."""
    if query.content == LEFT_OUT:
        return query
    return replace(query, content=template.replace(PLACEHOLDER, query.content))


def _track_messages(track: QueryTrack, template: str) -> list[Message]:
    own = query_id(track.query)
    blocks = [in_template(block, template) if block.record_id == own else block for block in track.blocks]
    said_to = [text_block(block.text) for block in blocks if block.role == "user"]
    said = [text_block(block.text) for block in blocks if block.role == "assistant"]
    return [user_message(said_to), *([_assistant(said)] if said else [])]


# ── window and tool_rounds ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PastCall:
    """A tool call of an ended query. Without a result, only its name is sent."""

    call: ToolCall
    result: SentResult | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """A turn of an ended query: its text before the tools, and its calls. It counts as a round if it has calls."""

    said: TrackBlock | None
    calls: tuple[PastCall, ...] = ()


@dataclass(frozen=True, slots=True)
class PastQuery:
    """An ended query. ``is_answered``: it has an answer, in full or up to where the user stopped it. Without a response
    it is left out but for its id."""

    number: int
    query: TrackBlock
    response: TrackBlock | None
    is_answered: bool
    turns: tuple[Round, ...] = ()
    leaves_out: int = 0
    """The query whose results it has left out."""


@dataclass(frozen=True, slots=True)
class Wire:
    """How the past is sent: the ``template`` of its queries, ``result_limit`` in characters, ``track_tokens``.

    ``reads_back``: the model has retrieve_full_context; ``has_tools``: it has any tools. Without tools, the service
    refuses tool calls in the messages.
    """

    template: str
    result_limit: int
    tokens: int
    reads_back: bool = False
    has_tools: bool = False


def window(queries: Sequence[PastQuery], exchanges: int) -> tuple[PastQuery, ...]:
    """The last ``exchanges`` answered queries, without their tools."""
    answered = [replace(query, turns=()) for query in queries if query.is_answered]
    return tuple(answered[max(len(answered) - exchanges, 0) :])


def tool_rounds(queries: Sequence[PastQuery], rounds: int) -> tuple[PastQuery, ...]:
    """All queries; only their last ``rounds`` tool rounds keep their results, the others are sent by name."""
    return _named_up_to(queries, _count(queries) - rounds)


def _named_up_to(queries: Sequence[PastQuery], threshold: int) -> tuple[PastQuery, ...]:
    number, sent = 0, []
    for query in queries:
        turns = []
        for turn in query.turns:
            number += bool(turn.calls)
            turns.append(by_name(turn) if number <= threshold else turn)
        sent.append(replace(query, turns=tuple(turns)))
    return tuple(sent)


def by_name(turn: Round) -> Round:
    """The turn with only the names of its calls."""
    return replace(turn, calls=tuple(PastCall(past.call) for past in turn.calls))


def within_budget(queries: Sequence[PastQuery], wire: Wire) -> tuple[PastQuery, ...]:
    """The queries reduced to the budget: first the oldest rounds are sent by name, then the oldest long texts are cut,
    then the oldest queries are left out. Rounds get what the texts leave, at least half."""
    short = _named_up_to(queries, _count(queries))
    room = rounds_room(short, wire)
    kept = 0
    for turn in reversed([turn for query in queries for turn in query.turns if turn.calls]):
        room -= extra_tokens(turn, wire)
        if room < 0:
            break
        kept += 1
    return _texts_within(_named_up_to(queries, _count(queries) - kept), wire)


def rounds_room(short: Iterable[PastQuery], wire: Wire) -> int:
    """The tokens left for details of tool rounds beside these queries, whose calls are sent by name."""
    return max(wire.tokens - sum(tokens_of_query(query, wire) for query in short), wire.tokens // 2)


def extra_tokens(turn: Round, wire: Wire) -> int:
    """The tokens of a round's details, without its names."""
    whole, short = (message_tokens(_turn_messages(version, wire)) for version in (turn, by_name(turn)))
    return max(whole - short, 0)


def tokens_of_query(past: PastQuery, wire: Wire) -> int:
    """The tokens of a query, by the cautious estimate."""
    return message_tokens(query_messages(past, wire))


def with_texts_cut(past: PastQuery, wire: Wire) -> PastQuery:
    """The query with its long texts cut."""
    turns = (replace(turn, said=_beginning(turn.said, wire) if turn.said else None) for turn in past.turns)
    query = _beginning(past.query, wire)
    response = _beginning(past.response, wire) if past.response else None
    return replace(past, query=query, response=response, turns=tuple(turns))


def _texts_within(queries: Sequence[PastQuery], wire: Wire) -> tuple[PastQuery, ...]:
    left, whole, kept = wire.tokens - _NOTE_TOKENS, True, []
    for query in reversed(queries):
        taken = tokens_of_query(query, wire)
        if not whole or taken > left:
            whole, query = False, with_texts_cut(query, wire)  # noqa: PLW2901 - what is sent of it
            taken = tokens_of_query(query, wire)
        if taken > left:
            break
        left -= taken
        kept.append(query)
    return tuple(reversed(kept))


def _beginning(block: TrackBlock, wire: Wire) -> TrackBlock:
    length = len(block.content)
    if length <= LONG_TEXT:
        return block
    read_on = _READ_ON.format(id=block.record_id, limit=LONG_TEXT) if wire.reads_back else ""
    note = _CUT.format(limit=LONG_TEXT, length=length, read_on=read_on)
    return replace(block, content=block.content[:LONG_TEXT] + note)


def _count(queries: Sequence[PastQuery]) -> int:
    return sum(bool(turn.calls) for query in queries for turn in query.turns)


# ── from records ──────────────────────────────────────────────────────────────────────────────────


def past_query(records: Sequence[Record]) -> PastQuery | None:
    """An ended query from its records in order; its calls have no results yet. None if there is no response."""
    by_kind = {parsed.kind: record for record in records if (parsed := parse_record_id(record.record_id))}
    query, response = by_kind.get("query"), by_kind.get("response")
    if query is None or response is None:
        return None
    parsed = parse_record_id(query.record_id)
    if is_declined(records):
        number = parsed.query if parsed else 0
        return PastQuery(number, declined_block(query), None, is_answered=False)
    turns = {record.turn: record.turn for record in records if _belongs_to_a_turn(record)}
    return PastQuery(
        number=parsed.query if parsed else 0,
        query=block_of(query),
        response=_response(response),
        is_answered=bool(response.stop),
        turns=tuple(_round([record for record in records if record.turn == turn]) for turn in turns),
        leaves_out=response.left_out,
    )


def without_left_out(queries: Sequence[PastQuery], also: int = 0) -> tuple[PastQuery, ...]:
    """The queries without the results that later ones have left out; ``also``: what the running query leaves out."""
    out = {also, *(query.leaves_out for query in queries)}
    return tuple(_without_results(query) if query.number in out else query for query in queries)


def _without_results(query: PastQuery) -> PastQuery:
    """The question alone; of a query that never got an answer not even that, since the service has not taken it."""
    if query.response is None or not query.is_answered:
        return PastQuery(query.number, declined_block(query.query), None, is_answered=False)
    return replace(query, turns=(), response=results_block(query.number, query.response.created_at))


def _belongs_to_a_turn(record: Record) -> bool:
    """A call or an interim text; not what was thought before the answer."""
    return bool(record.call or record.said)


def _response(record: Record) -> TrackBlock:
    block = block_of(record)
    if record.stop != "cancelled":
        return block
    return replace(block, content=f"{block.content.rstrip()} {STOPPED}")


def _round(records: Sequence[Record]) -> Round:
    """A round from its records. Of a thought only the interim text is sent, which is at the end of its record."""
    said = next((block_of(record) for record in records if record.said), None)
    length = next((record.said for record in records if record.said), 0)
    if said:
        said = replace(said, content=said.content[-length:])
    calls = (
        ToolCall(record.record_id, record.call.tool_use_id, record.call.tool, record.call.input)
        for record in records
        if record.call
    )
    return Round(said, tuple(PastCall(call) for call in calls))


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def replayed(queries: Sequence[PastQuery], wire: Wire) -> list[list[Message]]:
    """The messages of the queries of `window` or `tool_rounds`, a list for each."""
    return [query_messages(query, wire) for query in queries]


def older_left_out(last: int, wire: Wire) -> list[Message]:
    """A note that the queries up to ``last`` are left out, and how to read them."""
    read_back = _READ_BACK.format(last=last) if wire.reads_back else ""
    return [user_message([text_block(_OLDER.format(last=last, read_back=read_back))])]


def query_messages(past: PastQuery, wire: Wire) -> list[Message]:
    """The messages of a query: its text, each turn's text and calls, the response."""
    turns = [message for turn in past.turns for message in _turn_messages(turn, wire)]
    query = user_message([text_block(in_template(past.query, wire.template).text)])
    answer = [_assistant([text_block(past.response.text)])] if past.response else []
    return [query, *turns, *answer]


def _turn_messages(turn: Round, wire: Wire) -> list[Message]:
    calls = turn.calls if wire.has_tools else ()
    said = [text_block(turn.said.text)] if turn.said else []
    said += [_tool_use(call) for call in calls]
    messages = [_assistant(said)] if said else []
    return [*messages, user_message([_result(call, wire) for call in calls])] if calls else messages


def _assistant(content: list[dict[str, Any]]) -> Message:
    return {"role": "assistant", "content": content}


def _tool_use(past: PastCall) -> dict[str, Any]:
    arguments = thaw(past.call.input) if past.result else {}
    return {"type": "tool_use", "id": past.call.tool_use_id, "name": past.call.tool, "input": arguments}


def _result(past: PastCall, wire: Wire) -> dict[str, Any]:
    if past.result:
        return result_block(past.call, past.result, ResultCut(min(len(past.result.text), wire.result_limit)))
    said = left_out(past.call, wire)
    return {"type": "tool_result", "tool_use_id": past.call.tool_use_id, "content": [text_block(said)]}


def records_sent(past: PastQuery, wire: Wire) -> list[Record]:
    """What `query_messages` sends of each record, as the API shows it."""
    query = _record_of(in_template(past.query, wire.template))
    if past.response is None:
        return [query]
    turns = [record for turn in past.turns for record in _turn_records(turn, past.response.created_at, wire)]
    return [query, *turns, _record_of(past.response)]


def _turn_records(turn: Round, at: str, wire: Wire) -> list[Record]:
    said = [_record_of(turn.said)] if turn.said else []
    return said + [_call_record(call, at, wire) for call in turn.calls if wire.has_tools]


def _record_of(block: TrackBlock) -> Record:
    return Record(block.record_id, "message", block.role, block.said, block.created_at)


def _call_record(past: PastCall, at: str, wire: Wire) -> Record:
    call, result = past.call, past.result
    text = fitted(call.id, result.text, wire.result_limit) if result else left_out(call, wire)
    detail = ToolCallDetail(
        tool_use_id=call.tool_use_id,
        tool=call.tool,
        input=call.input if result else freeze({}),
        is_error=bool(result and result.is_error),
        seconds=0,
        turn=0,
    )
    return Record(call.id, "tool_call", "user", text, at, call=detail)


def left_out(call: ToolCall, wire: Wire) -> str:
    """The text in place of a result; it has the id if the model can read it back."""
    return _NAME_AND_ID.format(id=call.id) if wire.reads_back else _NAME_ONLY
