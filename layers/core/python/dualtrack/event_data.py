"""The types of a chat's events (CONTRACT 5), declared as the answers are: the JSON in the `data:` line.

The event log adds to each what `EventData` has.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, Literal, NotRequired, TypedDict

from dualtrack.answers import Chat, Count, Keyword, OpenCall, Seconds, Source, Time
from dualtrack.frozen import JsonObject
from dualtrack.vocabulary import BusyReason, CallStatus, DecidedBy, DecisionOutcome, RecordType, Role, Stop

TurnNumber = Annotated[int, Keyword("minimum", 1), "The model call of the chat, from 1"]


class EventData(TypedDict):
    """What every event has, beside its own fields."""

    chat_id: Annotated[str, "The chat"]
    at: Annotated[Time, "When it happened"]


class RecordEvent(TypedDict):
    """A record was stored."""

    record_id: Annotated[str, "Its id in the conversation, such as `q1-t1`"]
    role: Annotated[Role, "Its author"]
    type: Annotated[RecordType, "The type of the record"]


class TurnEvent(TypedDict):
    """A model call begins. The same number again means a retry: discard that turn's thinking and text."""

    turn: TurnNumber
    max_turns: Annotated[Count, "Maximum model calls that may use tools"]
    final: Annotated[bool, "Whether this is the last call, which may not use tools"]
    misfit: NotRequired[
        Annotated[str, "Why the answer before it does not fit its schema: this call answers once more"]
    ]


class ThinkingEvent(TypedDict):
    """What the model thinks before it writes, as it does; never part of the answer."""

    turn: TurnNumber
    text: Annotated[str, "The next piece"]


class DeltaEvent(TypedDict):
    """Text of a turn as it is generated, including text before tool calls."""

    turn: TurnNumber
    text: Annotated[str, "The next piece of text"]


class WrittenEvent(TypedDict):
    """The text of a turn is complete: the model now writes notes for the conversation's memory, which nobody is sent. A
    `delta` behind it still belongs to the text."""

    turn: TurnNumber


class StartedCall(TypedDict):
    """A tool call that begins."""

    id: Annotated[str, "Its record, such as `q1-t1`"]
    tool: Annotated[str, "The tool's name"]
    input: Annotated[JsonObject, "The arguments from the model"]


class ToolCallsStartEvent(TypedDict):
    """The tool calls of a turn begin, all at the same time."""

    turn: TurnNumber
    calls: Annotated[Sequence[StartedCall], "In the model's order"]


class ToolResultEvent(TypedDict):
    """A tool call has ended. Results may come in any order."""

    id: Annotated[str, "The call, as in `tool_calls_start`"]
    tool: Annotated[str, "The tool's name"]
    is_error: Annotated[bool, "Whether the result was an error"]
    status: Annotated[CallStatus, "What became of it, as in the chat object"]
    seconds: Annotated[Seconds, "How long it took"]
    preview: Annotated[str, Keyword("maxLength", 500), "The beginning of its result"]


_Try = TypedDict("_Try", {"try": Annotated[int, Keyword("minimum", 1), "The turn's tries so far"]})


class RetryingEvent(_Try):
    """The model is busy: the turn is retried."""

    turn: TurnNumber
    reason: Annotated[BusyReason, "Why"]
    seconds: Annotated[Count, "Seconds until the retry"]
    until: Annotated[Time, "When the chat stops waiting, at the latest"]


class LeftOutEvent(TypedDict):
    """The model's service declined this query as the one before: it is asked once more, without what the query named
    here had found and answered. A `turn` with the same number follows."""

    turn: TurnNumber
    query: Annotated[str, "The query whose results are left out, such as `q3`"]


class CreditsEvent(TypedDict):
    """Credits were held or charged; with `code` and `required`: there were too few for a tool call."""

    used: Annotated[Count, "Charged for this chat"]
    held: Annotated[Count, "Held for this chat"]
    available: Annotated[Count, "Credits that the user can still spend"]
    code: NotRequired[Annotated[Literal["insufficient_credits"], "Too few credits for a tool call"]]
    required: NotRequired[Annotated[Count, "The price of that call"]]


class PausedEvent(TypedDict):
    """The chat waits for decisions, and nothing runs. It ends a stream that has nothing after it, not the log."""

    turn: TurnNumber
    calls: Annotated[Sequence[OpenCall], "The calls that wait, in the model's order"]
    expires_at: Annotated[Time, "When the pause ends, at the latest"]


class DecidedCall(TypedDict):
    """A decision, without its texts."""

    id: Annotated[str, "The call"]
    outcome: Annotated[DecisionOutcome, "What was decided"]


class ResumedEvent(TypedDict):
    """Every call of the pause is decided: the chat goes on."""

    turn: TurnNumber
    by: Annotated[DecidedBy, "Who made the last decision; `expired`: nobody did in time"]
    decisions: Annotated[Sequence[DecidedCall], "All decisions of the pause"]


class AnswerEvent(TypedDict):
    """The answer: it replaces the deltas. The next chat of the conversation may begin."""

    response: Annotated[str, "The answer in Markdown"]
    sources: Annotated[Sequence[Source], "Its sources, distinct, in order of first use"]
    stop: Annotated[Stop, "Why it ended, as in the chat object"]
    turns: Annotated[Count, "Number of model calls"]


class DoneEvent(Chat):
    """The last event of a chat that was answered or cancelled: the chat object."""


class ErrorEvent(TypedDict):
    """The last event of a chat that failed; it never follows `answer`, and nothing is charged."""

    code: Annotated[str, "`internal`, `timeout`, `unavailable`, `model_busy` or `invalid_request`"]
    message: Annotated[str, "What went wrong, for people; it may change"]


EVENTS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "record": RecordEvent,
        "turn": TurnEvent,
        "thinking": ThinkingEvent,
        "delta": DeltaEvent,
        "written": WrittenEvent,
        "tool_calls_start": ToolCallsStartEvent,
        "tool_result": ToolResultEvent,
        "retrying": RetryingEvent,
        "left_out": LeftOutEvent,
        "credits": CreditsEvent,
        "paused": PausedEvent,
        "resumed": ResumedEvent,
        "answer": AnswerEvent,
        "done": DoneEvent,
        "error": ErrorEvent,
    }
)
"""The type of each event's data, by the event's name."""
