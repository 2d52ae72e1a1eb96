"""The types of the API's answers (CONTRACT 4), for the OpenAPI document.

Answers are not validated when a request is served; the tests check them against the document.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from dualtrack.api.models import PlanName
from dualtrack.api.parameters import Track
from dualtrack.credits.account import Kind as Movement
from dualtrack.memory.records import RecordType, Role
from dualtrack.profiles import Policy
from dualtrack.storage.chats import Status
from dualtrack.storage.corpus_jobs import Outcome
from dualtrack.storage.corpus_jobs import Status as JobStatus
from dualtrack.tool_values import Kind

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Closed(TypedDict):
    """Has only the listed fields."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]


class Refusal(TypedDict):
    """The content of an error; fields may be added."""

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]
    code: Annotated[str, Field(description="The kind of error, for programs")]
    message: Annotated[str, Field(description="What is wrong and what to do, for people; it may change")]
    required: NotRequired[Annotated[Count, Field(description="402: the credits that are needed")]]
    available: NotRequired[Annotated[Count, Field(description="402: the credits that are available")]]
    resets_at: NotRequired[Annotated[Time, Field(description="402: when the allowance covers them again")]]
    upgrade: NotRequired[
        Annotated[dict[str, Any], Field(description="402: plans and packs with their prices")]
    ]
    retry_after: NotRequired[
        Annotated[Count, Field(description="429: seconds to wait, as in the header Retry-After")]
    ]
    chat_id: NotRequired[
        Annotated[
            str, Field(description="409 conversation_busy: the chat that is running in the conversation")
        ]
    ]
    url: NotRequired[Annotated[str, Field(description="409 conversation_busy: the path of that chat")]]


class Error(Closed):
    """Every answer with status 400 or above."""

    error: Annotated[Refusal, Field(description="What is wrong")]


class Health(Closed):
    """The API is up."""

    status: Annotated[Literal["ok"], Field(description="Always `ok`")]


class OpenAPI(TypedDict):
    """An OpenAPI 3.1 document."""


# ── chats ─────────────────────────────────────────────────────────────────────────────────────────


class Source(Closed):
    """A source of an answer."""

    title: Annotated[str, Field(description="The title to show")]
    url: NotRequired[Annotated[str, Field(description="Its address")]]
    record_id: NotRequired[Annotated[str, Field(description="The tool call that returned it")]]


class ToolCall(Closed):
    """A tool call of a chat, without its result."""

    id: Annotated[str, Field(description="Its record, such as `q3-t1`")]
    tool: Annotated[str, Field(description="The tool's name")]
    input: Annotated[dict[str, Any], Field(description="The arguments from the model")]
    is_error: Annotated[bool, Field(description="Whether the result was an error")]
    seconds: Annotated[Seconds, Field(description="How long it took")]
    turn: Annotated[Count, Field(description="The model call that it belongs to, from 1")]


class Usage(Closed):
    """The tokens of a chat."""

    input_tokens: Annotated[Count, Field(description="Input tokens outside the model's cache")]
    output_tokens: Annotated[Count, Field(description="Written by the model")]
    cache_read_tokens: Annotated[Count, Field(description="Read from the cache")]
    cache_write_tokens: Annotated[Count, Field(description="Written to the cache")]
    summary_tokens: Annotated[
        Count, Field(description="Of the calls that wrote summaries; not part of any other figure")
    ]
    sent_tokens: Annotated[
        Count, Field(description="Estimated tokens sent, summed over the chat's model calls")
    ]
    full_history_tokens: Annotated[
        Count, Field(description="The same estimate if full histories had been sent")
    ]


class Failure(Closed):
    """Why a chat failed."""

    code: Annotated[str, Field(description="The kind of error, for programs")]
    message: Annotated[str, Field(description="What is wrong and what to do, for people; it may change")]


class Chat(Closed):
    """The chat object."""

    chat_id: Annotated[str, Field(description="The chat")]
    conversation_id: Annotated[str, Field(description="The conversation")]
    message_id: Annotated[str, Field(description="The record of the chat's query, such as `q3`")]
    profile: Annotated[str, Field(description="The conversation's agent")]
    status: Annotated[
        Status,
        Field(
            description="`answered`: complete except for its summaries; `done`, `failed` and `cancelled` are final"
        ),
    ]
    stop: Annotated[
        (
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
        ),
        Field(description="Why the answer ended; null until then, and if the chat failed"),
    ]
    response: Annotated[str | None, Field(description="The answer in Markdown; null until there is one")]
    summary: Annotated[str | None, Field(description="The answer's summary; null until the chat is done")]
    sources: Annotated[
        list[Source], Field(description="The answer's sources, distinct, in order of first use")
    ]
    tool_calls: Annotated[list[ToolCall], Field(description="Its tool calls in order")]
    turns: Annotated[Count, Field(description="Number of model calls")]
    credits_used: Annotated[Count, Field(description="Credits charged; 0 until the chat is settled")]
    credits_remaining: Annotated[
        Count, Field(description="The user's available credits after the chat last held or charged any")
    ]
    usage: Annotated[Usage, Field(description="Tokens")]
    created_at: Annotated[Time, Field(description="When it was created")]
    ended_at: Annotated[Time | None, Field(description="When it ended; null before that")]
    error: NotRequired[Annotated[Failure, Field(description="Only if it failed")]]


class Tokens(Closed):
    """The tokens of model calls."""

    fresh: Annotated[Count, Field(description="Input outside the cache")]
    cache_write: Annotated[Count, Field(description="Written to the cache")]
    cache_read: Annotated[Count, Field(description="Read from the cache")]
    output: Annotated[Count, Field(description="Written by the model")]


class ReceiptLine(Closed):
    """A line of a receipt. Lines of kind `chat` and `tool` have the credits charged, those of kind `ledger` the credits
    moved. Dollars are for the model in `model`, `summary` and `fold`, for models that the tool call `call` used in
    `tool_model` and `embedding`, and for AWS in `aws`. A `wait` is a turn's waits for a busy model: `tries` calls that
    it refused, and the `seconds` waited after them. Figures that were not recorded are null, or estimated if
    `estimated` is set."""

    kind: Annotated[
        Literal[
            "chat", "model", "wait", "tool", "tool_model", "embedding", "summary", "fold", "ledger", "aws"
        ],
        Field(description="Its kind"),
    ]
    at: Annotated[Time | None, Field(description="When it began; null if not recorded")]
    id: Annotated[str, Field(description="The line's own id in the receipt")]
    estimated: Annotated[bool, Field(description="Whether any of its figures is an estimate")]
    dollars: Annotated[Annotated[float, Field(ge=0)], Field(description="In US dollars")]
    turn: NotRequired[Annotated[Count | None, Field(description="The model call that it belongs to, from 1")]]
    model: NotRequired[Annotated[str | None, Field(description="The model; null if not recorded")]]
    usage: NotRequired[Annotated[Tokens, Field(description="Tokens of the call")]]
    seconds: NotRequired[Annotated[Seconds | None, Field(description="How long it took")]]
    first_seconds: NotRequired[Annotated[Seconds | None, Field(description="Seconds to the first token")]]
    calls: NotRequired[Annotated[Count, Field(description="Number of calls in the line")]]
    tries: NotRequired[Annotated[Count | None, Field(description="Number of attempts at the call")]]
    missing: NotRequired[
        Annotated[Count, Field(description="Summaries that the model did not make: extracts stand for them")]
    ]
    tool: NotRequired[Annotated[str, Field(description="The tool's name")]]
    call: NotRequired[Annotated[str, Field(description="The tool call that used the model")]]
    ran: NotRequired[Annotated[bool, Field(description="Whether the tool was run")]]
    is_error: NotRequired[Annotated[bool | None, Field(description="Whether the result was an error")]]
    credits: NotRequired[Annotated[Count, Field(description="Credits charged")]]
    movement: NotRequired[Annotated[Movement, Field(description="The kind of ledger entry")]]
    amount: NotRequired[
        Annotated[
            Annotated[float, Field(ge=0)],
            Field(description="Credits in `ledger`, units of `item` in `aws`"),
        ]
    ]
    available_after: NotRequired[
        Annotated[Count, Field(description="The user's available credits afterwards")]
    ]
    item: NotRequired[Annotated[str, Field(description="What AWS charges for")]]


class ReceiptTotals(Closed):
    """Sums of the lines."""

    credits: Annotated[Count, Field(description="Credits charged")]
    usage: Annotated[Tokens, Field(description="Tokens, without embeddings")]
    model_dollars: Annotated[Annotated[float, Field(ge=0)], Field(description="For models")]
    aws_dollars: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Field(description="For AWS, estimated; null if unknown"),
    ]
    dollars: Annotated[Annotated[float, Field(ge=0)], Field(description="In total")]
    estimated_dollars: Annotated[
        Annotated[float, Field(ge=0)], Field(description="The part of `dollars` that is estimated")
    ]


class Receipt(Closed):
    """What a chat did and what each step cost, in order."""

    chat_id: Annotated[str, Field(description="The chat")]
    conversation_id: Annotated[str, Field(description="The conversation")]
    message_id: Annotated[str, Field(description="The record of the chat's query, such as `q3`")]
    user_id: Annotated[str, Field(description="The user: the token's `sub`")]
    profile: Annotated[str, Field(description="The conversation's agent")]
    model: Annotated[str | None, Field(description="The model of its turns")]
    status: Annotated[Status, Field(description="As in the chat object")]
    stop: Annotated[str | None, Field(description="As in the chat object")]
    created_at: Annotated[Time, Field(description="When it was created")]
    ended_at: Annotated[Time | None, Field(description="When it ended; null before that")]
    recorded: Annotated[
        bool, Field(description="Whether the release that ran it recorded what a receipt needs")
    ]
    price_known: Annotated[bool | None, Field(description="Whether the price table has the model")]
    fictional: Annotated[
        bool, Field(description="Whether the offline model answered: tokens and dollars are fictional")
    ]
    lines: Annotated[list[ReceiptLine], Field(description="Its steps in order")]
    totals: Annotated[ReceiptTotals, Field(description="Sums of the lines")]
    differences: Annotated[list[str], Field(description="Where the lines do not add up; normally empty")]
    for_operator: NotRequired[
        Annotated[
            str,
            Field(
                description="Why the chat failed, in the service's own words, and the setting to check: for "
                "administrators, and where the stage shows it to users"
            ),
        ]
    ]


class StartedChat(Closed):
    """A running chat, and where to follow it."""

    chat_id: Annotated[str, Field(description="The chat")]
    conversation_id: Annotated[str, Field(description="The conversation")]
    message_id: Annotated[str, Field(description="The record of the chat's query, such as `q3`")]
    status: Annotated[Literal["running"], Field(description="Always `running`")]
    url: Annotated[str, Field(description="The path of the chat")]
    events_url: Annotated[str, Field(description="The path of its events")]


class Event(TypedDict):
    """A server-sent event; `dualtrack.api.event_data` has the type of each event's data."""


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


class Conversation(Closed):
    """A conversation without its records.

    Conversations are listed by `listed_at`: the time of the last query, else of creation. Only a fork has `forked_from`
    and `forked_before`.
    """

    conversation_id: Annotated[str, Field(description="The conversation")]
    title: Annotated[str, Field(description="The user's title, else the beginning of its first query")]
    profile: Annotated[str, Field(description="Its agent")]
    created_at: Annotated[Time, Field(description="When it was created")]
    updated_at: Annotated[Time, Field(description="When it was last changed")]
    listed_at: NotRequired[
        Annotated[Time, Field(description="When its last query began, else when it was created")]
    ]
    running_chat_id: NotRequired[
        Annotated[str, Field(description="The chat that is running in it; absent if none is")]
    ]
    forked_from: NotRequired[
        Annotated[str, Field(description="The conversation that it was forked from, which may be deleted")]
    ]
    forked_before: NotRequired[
        Annotated[str, Field(description="The first query that it does not share with `forked_from`")]
    ]


class Conversations(Closed):
    """A page of the user's conversations."""

    conversations: Annotated[list[Conversation], Field(description="By last query, the latest first")]
    cursor: NotRequired[Annotated[str, Field(description="For the next page; absent on the last page")]]


class Attachment(Closed):
    """A file of a query or of a tool's result."""

    media_type: Annotated[str, Field(description="Its type")]
    size: Annotated[Count, Field(description="In bytes")]
    name: NotRequired[Annotated[str, Field(description="The file's name")]]
    record_id: NotRequired[Annotated[str, Field(description="For a text file: the record with its text")]]


class Record(Closed):
    """A record of either track; a tool call has `result` instead of `content`."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid",
        json_schema_extra={"oneOf": [{"required": ["content"]}, {"required": ["result"]}]},
    )
    record_id: Annotated[str, Field(description="Its id in the conversation")]
    ref: NotRequired[Annotated[str, Field(description="The records that a summary or digest replaces")]]
    type: Annotated[RecordType, Field(description="The type of the record")]
    role: Annotated[Role, Field(description="Its author")]
    content: NotRequired[Annotated[str, Field(description="Its text; a tool call has `result` instead")]]
    attachments: NotRequired[Annotated[list[Attachment], Field(description="Its files")]]
    created_at: Annotated[Time, Field(description="When it was created")]
    tool_use_id: NotRequired[Annotated[str, Field(description="The model's own id of the call")]]
    tool: NotRequired[Annotated[str, Field(description="The tool's name")]]
    input: NotRequired[Annotated[dict[str, Any], Field(description="The arguments from the model")]]
    result: NotRequired[Annotated[str, Field(description="The tool's result")]]
    is_error: NotRequired[Annotated[bool, Field(description="Whether the result was an error")]]
    seconds: NotRequired[Annotated[Seconds, Field(description="How long it took")]]
    turn: NotRequired[Annotated[Count, Field(description="The model call that it belongs to, from 1")]]
    stop: NotRequired[Annotated[str, Field(description="For a response: why it ended")]]
    chat_id: NotRequired[Annotated[str, Field(description="The chat that it belongs to")]]
    next_offset: NotRequired[
        Annotated[
            Annotated[int, Field(ge=1)],
            Field(description="Where the next piece of its text begins; absent in the last piece"),
        ]
    ]


class ConversationRecords(Conversation):
    """A conversation with a page of its records."""

    track: Annotated[Track, Field(description="The track")]
    records: Annotated[list[Record], Field(description="In order")]
    cursor: NotRequired[Annotated[str, Field(description="For the next page; absent on the last page")]]


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class Tool(Closed):
    """A tool that the model can call."""

    name: Annotated[str, Field(description="Its name")]
    description: Annotated[str, Field(description="What it is for")]
    input_schema: Annotated[dict[str, Any], Field(description="JSON Schema of its arguments")]
    price: Annotated[
        Count, Field(description="Credits per call; for `retrieve_documentation`, once per chat")
    ]
    kind: Annotated[Kind, Field(description="The function that runs it")]


class History(Closed):
    """How an agent's past queries are sent."""

    policy: Annotated[
        Policy, Field(description="`dual_track`: as summaries; the others send the last records in full")
    ]


class Profile(Closed):
    """An agent: its model, its tools and its memory."""

    name: Annotated[str, Field(description="Its name")]
    description: Annotated[str, Field(description="What it is for")]
    model: Annotated[str, Field(description="Its model")]
    max_turns: Annotated[Count, Field(description="Maximum model calls that may use tools")]
    tools: Annotated[list[str], Field(description="The names of its tools")]
    history: Annotated[History, Field(description="Its memory")]
    suggestions: Annotated[list[str], Field(description="Suggested first questions")]


class LeftOutTool(Closed):
    """A tool of an MCP server that cannot be offered."""

    server: Annotated[str, Field(description="The server")]
    name: Annotated[str, Field(description="The server's own name of it; `*` for several")]
    reason: Annotated[str, Field(description="Why")]


class Tools(Closed):
    """The tools with their prices, and the profiles that offer them."""

    tools: Annotated[list[Tool], Field(description="Every tool, with its price")]
    profiles: Annotated[list[Profile], Field(description="The agents")]
    left_out: NotRequired[
        Annotated[
            list[LeftOutTool],
            Field(description="For administrators: tools of MCP servers that cannot be offered"),
        ]
    ]


# ── credits and connections ───────────────────────────────────────────────────────────────────────


class Daily(Closed):
    """The daily allowance."""

    limit: Annotated[Count, Field(description="Credits per day")]
    used: Annotated[Count, Field(description="Credits charged; without those held")]
    remaining: Annotated[Count, Field(description="Credits left")]
    resets_at: Annotated[Time, Field(description="When it is reset")]


class Monthly(Closed):
    """The monthly limit of the allowance."""

    limit: Annotated[Count, Field(description="Maximum credits from the allowance per month")]
    used: Annotated[Count, Field(description="Credits charged; without those held")]
    resets_at: Annotated[Time, Field(description="When it is reset")]


class Pack(Closed):
    """Credits that do not expire."""

    remaining: Annotated[Count, Field(description="Credits left")]


class Credits(Closed):
    """A user's balance."""

    plan: Annotated[PlanName, Field(description="The user's plan")]
    available: Annotated[Count, Field(description="Credits that can be spent now")]
    held: Annotated[Count, Field(description="Credits held for running chats")]
    daily: Annotated[Daily, Field(description="The daily allowance")]
    monthly: Annotated[Monthly | None, Field(description="The monthly limit; null if the plan has none")]
    pack: Annotated[Pack, Field(description="Credits that were bought or granted")]


class Entry(Closed):
    """A change of a user's credits."""

    entry_id: Annotated[str, Field(description="Its id")]
    at: Annotated[Time, Field(description="When it happened")]
    kind: Annotated[Movement, Field(description="The kind of change")]
    amount: Annotated[Count, Field(description="Number of credits")]
    chat_id: NotRequired[Annotated[str, Field(description="The chat that caused it")]]
    reason: NotRequired[Annotated[str, Field(description="The operator's reason")]]
    available_after: Annotated[Count, Field(description="Available credits afterwards")]


class Ledger(Closed):
    """A page of the user's ledger."""

    entries: Annotated[list[Entry], Field(description="Newest first")]
    cursor: NotRequired[Annotated[str, Field(description="For the next page; absent on the last page")]]


class SpendingDay(Closed):
    """A user's spending on a day (UTC)."""

    day: Annotated[
        Annotated[str, Field(json_schema_extra={"format": "date"})], Field(description="The day (UTC)")
    ]
    chats: Annotated[Count, Field(description="Chats that ended on the day")]
    credits: Annotated[Count, Field(description="Credits charged for them")]
    dollars: Annotated[
        Annotated[float, Field(ge=0)],
        Field(description="US dollars for their turns and tools, including failed chats"),
    ]


class Spending(Closed):
    """What a user's chats cost, by day. `complete` is false if the ledger has more entries for these days than are
    read; then the oldest listed day may be incomplete, and earlier days are missing."""

    user_id: Annotated[str, Field(description="The user: the token's `sub`")]
    complete: Annotated[bool, Field(description="False if not all ledger entries of these days were read")]
    days: Annotated[list[SpendingDay], Field(description="Newest first, without days that have no chats")]


class Connection(Closed):
    """Whether the account is connected."""

    connected: Annotated[bool, Field(description="Whether a token is stored")]


class Erasure(Closed):
    """The erasure has begun: the user is refused from now on, and all their data is deleted."""

    status: Annotated[Literal["erasing"], Field(description="Always `erasing`")]


# ── corpora ───────────────────────────────────────────────────────────────────────────────────────


class Upload(Closed):
    """How to upload a file: the request to send, with exactly the announced bytes, before it expires."""

    upload_id: Annotated[str, Field(description="The id of the upload, for the job")]
    name: Annotated[str, Field(description="The file's name")]
    method: Annotated[Literal["PUT"], Field(description="The request's method")]
    url: Annotated[str, Field(description="The address, signed for this file")]
    headers: Annotated[dict[str, str], Field(description="Headers to send")]
    expires_at: Annotated[Time, Field(description="When the address expires")]


class Uploads(Closed):
    """An address for each file."""

    uploads: Annotated[list[Upload], Field(description="In the order of the request")]


class JobFile(Closed):
    """A file of a job. A refused file has a reason, and its invalid rows if it has rows; the others have a title and
    counts."""

    name: Annotated[str, Field(description="Its name")]
    state: Annotated[Literal["waiting", "read", "refused"], Field(description="Its state")]
    reason: NotRequired[Annotated[str, Field(description="Why it was refused")]]
    problems: NotRequired[Annotated[list[str], Field(description="The invalid rows of a refused file")]]
    title: NotRequired[Annotated[str, Field(description="The document's title")]]
    counts: NotRequired[
        Annotated[
            dict[str, Count], Field(description="What was read, such as lessons or nodes: number of each")
        ]
    ]
    outcome: NotRequired[Annotated[Outcome, Field(description="What it changed; only once the job is done")]]


class CorpusJob(Closed):
    """A job that changes a corpus: it adds files and removes documents."""

    job_id: Annotated[str, Field(description="The job")]
    status: Annotated[JobStatus, Field(description="Its status; `done` and `failed` are final")]
    created_at: Annotated[Time, Field(description="When it was created")]
    ended_at: Annotated[Time | None, Field(description="When it ended; null before that")]
    reset: Annotated[bool, Field(description="Whether everything else in the corpus is removed")]
    removes: Annotated[list[str], Field(description="Titles of documents to remove")]
    embedded: Annotated[Count, Field(description="Passages that have vectors so far")]
    to_embed: Annotated[Count, Field(description="Passages that need vectors")]
    files: Annotated[list[JobFile], Field(description="Its files")]
    url: Annotated[str, Field(description="The path of the job")]
    error: NotRequired[Annotated[str, Field(description="Why it failed")]]


class CorpusDocument(Closed):
    """A document of a corpus."""

    document_id: Annotated[str, Field(description="The id for removing it")]
    title: Annotated[str, Field(description="Its key in the corpus")]
    name: Annotated[str, Field(description="The file that it came from")]
    counts: Annotated[
        dict[str, Count], Field(description="What it has, such as lessons or nodes: number of each")
    ]
    updated_at: Annotated[Time, Field(description="When it was last changed")]


class GraphProperty(Closed):
    """A property of nodes or relationships."""

    name: Annotated[str, Field(description="Its name")]
    type: Annotated[Literal["STRING", "INT64", "DOUBLE", "BOOL"], Field(description="The type of its values")]


class GraphLabel(Closed):
    """A label, with the number of its nodes."""

    name: Annotated[str, Field(description="Its name")]
    properties: Annotated[list[GraphProperty], Field(description="The nodes' properties")]
    count: Annotated[Count, Field(description="Number of nodes")]


class GraphType(Closed):
    """A relationship type, with the number of its relationships."""

    name: Annotated[str, Field(description="Its name")]
    ends: Annotated[list[list[str]], Field(description="Pairs of labels: from, to")]
    properties: Annotated[list[GraphProperty], Field(description="The relationships' properties")]
    count: Annotated[Count, Field(description="Number of relationships")]


class GraphSchema(Closed):
    """The schema of a graph."""

    labels: Annotated[list[GraphLabel], Field(description="The labels of its nodes")]
    types: Annotated[list[GraphType], Field(description="The types of its relationships")]


class Corpus(Closed):
    """The published version of a corpus."""

    corpus: Annotated[str, Field(description="The corpus")]
    version: Annotated[str | None, Field(description="The published version; null before the first")]
    model: Annotated[
        str, Field(description="The embedding model of its vectors; empty if keywords alone rank")
    ]
    counts: Annotated[
        dict[str, Count], Field(description="What it has, such as lessons or nodes: number of each")
    ]
    updated_at: Annotated[Time | None, Field(description="When it was published")]
    documents: Annotated[list[CorpusDocument], Field(description="Its documents")]
    schema: NotRequired[
        Annotated[GraphSchema | None, Field(description="Only for the graph; null before the first load")]
    ]
