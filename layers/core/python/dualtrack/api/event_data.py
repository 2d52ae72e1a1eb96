"""What each event of a chat carries (CONTRACT 5), for the OpenAPI document: the JSON in its `data:` line.

Nothing is checked against these types when an event is written: the tests hold every event they read to the document.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field

from dualtrack.api.answers import Chat, Closed, Count, Seconds, Source, Time
from dualtrack.memory.records import RecordType, Role
from dualtrack.models.busy import Reason

TurnNumber = Annotated[int, Field(ge=1, description="Which model call of the chat, from 1")]


class EventData(Closed):
    """What every event has."""

    chat_id: Annotated[str, Field(description="The chat")]
    at: Annotated[Time, Field(description="When it happened")]


class RecordEvent(EventData):
    """A record was stored."""

    record_id: Annotated[str, Field(description="Its id in the conversation, such as `q1-t1`")]
    role: Annotated[Role, Field(description="Whose it is")]
    type: Annotated[RecordType, Field(description="What it is")]


class TurnEvent(EventData):
    """A model call begins. If the same number comes again, the call is made again: forget that turn's deltas."""

    turn: TurnNumber
    max_turns: Annotated[Count, Field(description="Model calls that may use tools")]
    final: Annotated[bool, Field(description="Whether this call may use no tools and so is the last")]


class DeltaEvent(EventData):
    """Text of a turn as it is generated, also that of turns which go on to call tools."""

    turn: TurnNumber
    text: Annotated[str, Field(description="The next piece")]


class StartedCall(Closed):
    """A tool call that begins."""

    id: Annotated[str, Field(description="Its record, such as `q1-t1`")]
    tool: Annotated[str, Field(description="The tool's name")]
    input: Annotated[dict[str, Any], Field(description="What the model called it with")]


class ToolCallsStartEvent(EventData):
    """The tool calls of a turn begin, all at once."""

    turn: TurnNumber
    calls: Annotated[list[StartedCall], Field(description="In the model's order")]


class ToolResultEvent(EventData):
    """A tool has come back. Results come in any order."""

    id: Annotated[str, Field(description="The call, as in `tool_calls_start`")]
    tool: Annotated[str, Field(description="The tool's name")]
    is_error: Annotated[bool, Field(description="Whether the model was told of a failure")]
    seconds: Annotated[Seconds, Field(description="How long it took")]
    preview: Annotated[str, Field(max_length=500, description="How its result begins")]


class RetryingEvent(EventData):
    """The model is busy: the turn is begun again, after so many seconds."""

    turn: TurnNumber
    reason: Annotated[Reason, Field(description="Why")]
    seconds: Annotated[Count, Field(description="Until the turn is begun again")]


class CreditsEvent(EventData):
    """Credits were held or charged; with `code` and `required`, a tool call could not be paid."""

    used: Annotated[Count, Field(description="Charged for this chat")]
    held: Annotated[Count, Field(description="Held for this chat")]
    available: Annotated[Count, Field(description="What the user can still spend")]
    code: NotRequired[Annotated[Literal["insufficient_credits"], Field(description="A call was not paid")]]
    required: NotRequired[Annotated[Count, Field(description="What that call costs")]]


class AnswerEvent(EventData):
    """The answer: it replaces what the deltas have said. The next chat of the conversation may begin."""

    response: Annotated[str, Field(description="The answer in Markdown")]
    sources: Annotated[list[Source], Field(description="What it rests on, distinct, in order of first use")]
    stop: Annotated[str, Field(description="Why it ended, as in the chat object")]
    turns: Annotated[Count, Field(description="Model calls made")]


class DoneEvent(Chat):
    """The last event of a chat that was answered or cancelled: the chat object."""

    at: Annotated[Time, Field(description="When it happened")]


class ErrorEvent(EventData):
    """The last event of a chat that failed; it never follows `answer`, and nothing is charged."""

    code: Annotated[str, Field(description="Which kind of error: `internal`, `timeout` or `unavailable`")]
    message: Annotated[str, Field(description="What went wrong, for people; it may change")]


EVENTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "record": RecordEvent,
        "turn": TurnEvent,
        "delta": DeltaEvent,
        "tool_calls_start": ToolCallsStartEvent,
        "tool_result": ToolResultEvent,
        "retrying": RetryingEvent,
        "credits": CreditsEvent,
        "answer": AnswerEvent,
        "done": DoneEvent,
        "error": ErrorEvent,
    }
)
"""By the event's name."""
