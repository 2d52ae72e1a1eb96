"""The types of a chat's events (CONTRACT 5), for the OpenAPI document: the JSON in the `data:` line.

Events are not validated when they are written; the tests check those that they read against the document.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field

from dualtrack.api.answers import Chat, Closed, Count, Seconds, Source, Time
from dualtrack.memory.records import RecordType, Role
from dualtrack.models.busy import Reason

TurnNumber = Annotated[int, Field(ge=1, description="The model call of the chat, from 1")]


class EventData(Closed):
    """The fields of every event."""

    chat_id: Annotated[str, Field(description="The chat")]
    at: Annotated[Time, Field(description="When it happened")]


class RecordEvent(EventData):
    """A record was stored."""

    record_id: Annotated[str, Field(description="Its id in the conversation, such as `q1-t1`")]
    role: Annotated[Role, Field(description="Its author")]
    type: Annotated[RecordType, Field(description="The type of the record")]


class TurnEvent(EventData):
    """A model call begins. The same number again means a retry: discard that turn's deltas."""

    turn: TurnNumber
    max_turns: Annotated[Count, Field(description="Maximum model calls that may use tools")]
    final: Annotated[bool, Field(description="Whether this is the last call, which may not use tools")]


class DeltaEvent(EventData):
    """Text of a turn as it is generated, including text before tool calls."""

    turn: TurnNumber
    text: Annotated[str, Field(description="The next piece of text")]


class StartedCall(Closed):
    """A tool call that begins."""

    id: Annotated[str, Field(description="Its record, such as `q1-t1`")]
    tool: Annotated[str, Field(description="The tool's name")]
    input: Annotated[dict[str, Any], Field(description="The arguments from the model")]


class ToolCallsStartEvent(EventData):
    """The tool calls of a turn begin, all at the same time."""

    turn: TurnNumber
    calls: Annotated[list[StartedCall], Field(description="In the model's order")]


class ToolResultEvent(EventData):
    """A tool call has ended. Results may come in any order."""

    id: Annotated[str, Field(description="The call, as in `tool_calls_start`")]
    tool: Annotated[str, Field(description="The tool's name")]
    is_error: Annotated[bool, Field(description="Whether the result was an error")]
    seconds: Annotated[Seconds, Field(description="How long it took")]
    preview: Annotated[str, Field(max_length=500, description="The beginning of its result")]


class RetryingEvent(EventData):
    """The model is busy: the turn is retried."""

    turn: TurnNumber
    reason: Annotated[Reason, Field(description="Why")]
    tries: Annotated[int, Field(alias="try", ge=1, description="The turn's tries so far")]
    seconds: Annotated[Count, Field(description="Seconds until the retry")]
    until: Annotated[Time, Field(description="When the chat stops waiting, at the latest")]


class CreditsEvent(EventData):
    """Credits were held or charged; with `code` and `required`: there were too few for a tool call."""

    used: Annotated[Count, Field(description="Charged for this chat")]
    held: Annotated[Count, Field(description="Held for this chat")]
    available: Annotated[Count, Field(description="Credits that the user can still spend")]
    code: NotRequired[
        Annotated[Literal["insufficient_credits"], Field(description="Too few credits for a tool call")]
    ]
    required: NotRequired[Annotated[Count, Field(description="The price of that call")]]


class AnswerEvent(EventData):
    """The answer: it replaces the deltas. The next chat of the conversation may begin."""

    response: Annotated[str, Field(description="The answer in Markdown")]
    sources: Annotated[list[Source], Field(description="Its sources, distinct, in order of first use")]
    stop: Annotated[str, Field(description="Why it ended, as in the chat object")]
    turns: Annotated[Count, Field(description="Number of model calls")]


class DoneEvent(Chat):
    """The last event of a chat that was answered or cancelled: the chat object."""

    at: Annotated[Time, Field(description="When it happened")]


class ErrorEvent(EventData):
    """The last event of a chat that failed; it never follows `answer`, and nothing is charged."""

    code: Annotated[str, Field(description="`internal`, `timeout`, `unavailable` or `model_busy`")]
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
"""The type of each event's data, by the event's name."""
