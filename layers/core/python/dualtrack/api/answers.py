"""What the API answers (CONTRACT 4), for the OpenAPI document.

Nothing is checked against these types when a request is served: the tests hold every answer to the document.
"""

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from dualtrack.api.conversations import Track
from dualtrack.api.models import PlanName
from dualtrack.credits.account import Kind as Movement
from dualtrack.memory.records import RecordType, Role
from dualtrack.storage.chats import Status
from dualtrack.storage.corpus_jobs import Outcome
from dualtrack.storage.corpus_jobs import Status as JobStatus
from dualtrack.tool import Kind

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Closed(TypedDict):
    """Has no fields but those named."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]


class Refusal(TypedDict):
    """What an error says; further fields may come."""

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]
    code: str
    message: str
    required: NotRequired[Count]
    available: NotRequired[Count]
    resets_at: NotRequired[Time]
    upgrade: NotRequired[dict[str, Any]]
    retry_after: NotRequired[Count]


class Error(Closed):
    """Every answer of status 400 and above."""

    error: Refusal


class Health(Closed):
    """The API answers."""

    status: Literal["ok"]


class OpenAPI(TypedDict):
    """An OpenAPI 3.1 document."""


# ── chats ─────────────────────────────────────────────────────────────────────────────────────────


class Source(Closed):
    """What an answer rests on."""

    title: str
    url: NotRequired[str]
    record_id: NotRequired[str]


class ToolCall(Closed):
    """A tool call of a chat, without its result."""

    id: str
    tool: str
    input: dict[str, Any]
    is_error: bool
    seconds: Seconds
    turn: Count


class Usage(Closed):
    """The tokens of a chat."""

    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count
    cache_write_tokens: Count
    summary_tokens: Count
    sent_tokens: Count
    full_history_tokens: Count


class Failure(Closed):
    """Why a chat failed."""

    code: str
    message: str


class Chat(Closed):
    """The chat object."""

    chat_id: str
    conversation_id: str
    message_id: str
    profile: str
    status: Status
    stop: (
        Literal[
            "complete",
            "max_turns",
            "insufficient_credits",
            "max_tokens",
            "context_window",
            "timeout",
            "max_cost",
            "refusal",
            "cancelled",
        ]
        | None
    )
    response: str | None
    summary: str | None
    sources: list[Source]
    tool_calls: list[ToolCall]
    turns: Count
    credits_used: Count
    credits_remaining: Count
    usage: Usage
    created_at: Time
    ended_at: Time | None
    error: NotRequired[Failure]


class Tokens(Closed):
    """Of calls of a model: read as fresh, written to its cache, read from it, and put out."""

    fresh: Count
    cache_write: Count
    cache_read: Count
    output: Count


class ReceiptLine(Closed):
    """One thing that a chat did. `at`: when it began, null where that is not on record. Credits are charged in
    `chat` and `tool`, moved in `ledger`; dollars are the model's in `model`, `summary` and `fold`, in `tool_model` and
    `embedding` those of what the tool call `call` asked of models itself, and AWS's in `aws`. Figures that
    were never recorded are null or, with `estimated`, guessed."""

    kind: Literal["chat", "model", "tool", "tool_model", "embedding", "summary", "fold", "ledger", "aws"]
    at: Time | None
    id: str
    estimated: bool
    dollars: Annotated[float, Field(ge=0)]
    turn: NotRequired[Count | None]
    model: NotRequired[str | None]
    usage: NotRequired[Tokens]
    seconds: NotRequired[Seconds | None]
    first_seconds: NotRequired[Seconds | None]
    calls: NotRequired[Count]
    tries: NotRequired[Count | None]
    tool: NotRequired[str]
    call: NotRequired[str]
    ran: NotRequired[bool]
    is_error: NotRequired[bool | None]
    credits: NotRequired[Count]
    movement: NotRequired[Movement]
    amount: NotRequired[Annotated[float, Field(ge=0)]]
    available_after: NotRequired[Count]
    item: NotRequired[str]


class ReceiptTotals(Closed):
    """Sums of the lines; `estimated_dollars` are part of `dollars`, and `usage` is without embeddings."""

    credits: Count
    usage: Tokens
    model_dollars: Annotated[float, Field(ge=0)]
    aws_dollars: Annotated[float, Field(ge=0)] | None
    dollars: Annotated[float, Field(ge=0)]
    estimated_dollars: Annotated[float, Field(ge=0)]


class Receipt(Closed):
    """What a chat did and what each thing cost, in order. `recorded`: whether its release kept what a receipt needs;
    `price_known`: whether the price table has the model; `differences`: where the lines do not add up."""

    chat_id: str
    conversation_id: str
    message_id: str
    user_id: str
    profile: str
    model: str | None
    status: Status
    stop: str | None
    created_at: Time
    ended_at: Time | None
    recorded: bool
    price_known: bool | None
    lines: list[ReceiptLine]
    totals: ReceiptTotals
    differences: list[str]


class StartedChat(Closed):
    """A chat that goes on, and where to follow it."""

    chat_id: str
    conversation_id: str
    message_id: str
    status: Literal["running"]
    url: str
    events_url: str


_EVENT_DATA: Final = {
    "contentMediaType": "application/json",
    "contentSchema": {
        "type": "object",
        "properties": {"chat_id": {"type": "string"}, "at": {"type": "string", "format": "date-time"}},
        "required": ["chat_id", "at"],
    },
}


class Event(TypedDict):
    """A server-sent event. `data` is a JSON object with at least `chat_id` and `at`."""

    id: Annotated[str, Field(pattern="^[1-9][0-9]*$")]
    event: Literal[
        "record",
        "turn",
        "delta",
        "tool_calls_start",
        "tool_result",
        "retrying",
        "credits",
        "answer",
        "done",
        "error",
    ]
    data: Annotated[str, Field(json_schema_extra=_EVENT_DATA)]


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


class Conversation(Closed):
    """A conversation without its records.

    `listed_at` is its last query's time (else that of its creation), by which it is listed; `running_chat_id` is there
    while a chat runs in it. A fork names the conversation that it was made of, which may be gone, and the first query
    that it does not share.
    """

    conversation_id: str
    title: str
    profile: str
    created_at: Time
    updated_at: Time
    listed_at: NotRequired[Time]
    running_chat_id: NotRequired[str]
    forked_from: NotRequired[str]
    forked_before: NotRequired[str]


class Conversations(Closed):
    """A page of the user's conversations."""

    conversations: list[Conversation]
    cursor: NotRequired[str]


class Attachment(Closed):
    """A file of a query or of a tool's result; its size in bytes; of a text file the record that it is."""

    media_type: str
    size: Count
    name: NotRequired[str]
    record_id: NotRequired[str]


class Record(Closed):
    """A record of either track; a tool call has its result in place of content."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid",
        json_schema_extra={"oneOf": [{"required": ["content"]}, {"required": ["result"]}]},
    )
    record_id: str
    ref: NotRequired[str]
    type: RecordType
    role: Role
    content: NotRequired[str]
    attachments: NotRequired[list[Attachment]]
    created_at: Time
    tool_use_id: NotRequired[str]
    tool: NotRequired[str]
    input: NotRequired[dict[str, Any]]
    result: NotRequired[str]
    is_error: NotRequired[bool]
    seconds: NotRequired[Seconds]
    turn: NotRequired[Count]
    stop: NotRequired[str]
    chat_id: NotRequired[str]
    next_offset: NotRequired[Annotated[int, Field(ge=1)]]


class ConversationRecords(Conversation):
    """A conversation with a page of its records."""

    track: Track
    records: list[Record]
    cursor: NotRequired[str]


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class Tool(Closed):
    """What the model can call; its price in credits a call."""

    name: str
    description: str
    input_schema: dict[str, Any]
    price: Count
    kind: Kind


class Profile(Closed):
    """How a conversation is led, and the names of its tools."""

    name: str
    description: str
    model: str
    max_turns: Count
    tools: list[str]
    suggestions: list[str]


class Tools(Closed):
    """What can be called at what price, and which profile offers it."""

    tools: list[Tool]
    profiles: list[Profile]


# ── credits and connections ───────────────────────────────────────────────────────────────────────


class Daily(Closed):
    """A day's allowance."""

    limit: Count
    used: Count
    remaining: Count
    resets_at: Time


class Monthly(Closed):
    """A month's bound."""

    limit: Count
    used: Count
    resets_at: Time


class Pack(Closed):
    """Credits that do not expire."""

    remaining: Count


class Credits(Closed):
    """A user's balance."""

    plan: PlanName
    available: Count
    held: Count
    daily: Daily
    monthly: Monthly | None
    pack: Pack


class Entry(Closed):
    """What moved a user's credits."""

    entry_id: str
    at: Time
    kind: Movement
    amount: Count
    chat_id: NotRequired[str]
    reason: NotRequired[str]
    available_after: Count


class Ledger(Closed):
    """A page of the user's ledger."""

    entries: list[Entry]
    cursor: NotRequired[str]


class SpendingDay(Closed):
    """Chats that ended on a day (UTC), what they were charged, and the dollars of their turns and tools, failed ones'
    too."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    chats: Count
    credits: Count
    dollars: Annotated[float, Field(ge=0)]


class Spending(Closed):
    """What a user's chats took, newest day first, days without chats left out. `complete`: false if the ledger has
    more lines for these days than are looked at; then the oldest day that is listed may lack some, and those before
    it are not there."""

    user_id: str
    complete: bool
    days: list[SpendingDay]


class Connection(Closed):
    """Whether there is one."""

    connected: bool


class Erasure(Closed):
    """That it has begun: the user is refused from now on, and all that is theirs goes."""

    status: Literal["erasing"]


# ── corpora ───────────────────────────────────────────────────────────────────────────────────────


class Upload(Closed):
    """Where to put a file: by this method, with these headers and the size that was named, until it expires."""

    upload_id: str
    name: str
    method: Literal["PUT"]
    url: str
    headers: dict[str, str]
    expires_at: Time


class Uploads(Closed):
    """An address for each file, in order."""

    uploads: list[Upload]


class JobFile(Closed):
    """What became of a file. A refused one has the reason, and the bad rows where it has rows; the others have
    what was read of them; `outcome` is there once the job is done."""

    name: str
    state: Literal["waiting", "read", "refused"]
    reason: NotRequired[str]
    problems: NotRequired[list[str]]
    title: NotRequired[str]
    counts: NotRequired[dict[str, Count]]
    outcome: NotRequired[Outcome]


class CorpusJob(Closed):
    """A change of a corpus: files that are taken in, titles that are removed, and how far it is."""

    job_id: str
    status: JobStatus
    created_at: Time
    ended_at: Time | None
    reset: bool
    removes: list[str]
    embedded: Count
    to_embed: Count
    files: list[JobFile]
    url: str
    error: NotRequired[str]


class CorpusDocument(Closed):
    """A document of a corpus; its title is the key, and the file's name is where it comes from."""

    document_id: str
    title: str
    name: str
    counts: dict[str, Count]
    updated_at: Time


class GraphProperty(Closed):
    """A property of nodes or relationships."""

    name: str
    type: Literal["STRING", "INT64", "DOUBLE", "BOOL"]


class GraphLabel(Closed):
    """A label, with the number of its nodes."""

    name: str
    properties: list[GraphProperty]
    count: Count


class GraphType(Closed):
    """A relationship type: the pairs of labels that it goes from and to, and the number of its relationships."""

    name: str
    ends: list[list[str]]
    properties: list[GraphProperty]
    count: Count


class GraphSchema(Closed):
    """What is in a graph."""

    labels: list[GraphLabel]
    types: list[GraphType]


class Corpus(Closed):
    """What is published, in which version, with which model's vectors (empty: keywords alone). `schema`: of the graph
    alone, null before the first load."""

    corpus: str
    version: str | None
    model: str
    counts: dict[str, Count]
    updated_at: Time | None
    documents: list[CorpusDocument]
    schema: NotRequired[GraphSchema | None]
