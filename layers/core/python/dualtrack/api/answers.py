"""What the API answers (CONTRACT 4), for the OpenAPI document.

Nothing is checked against these types when a request is served: the tests hold every answer to the document.
"""

from typing import Annotated, Any, Literal, NotRequired

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
    code: Annotated[str, Field(description="Which kind of error, for programs")]
    message: Annotated[str, Field(description="What is wrong and what to do, for people; it may change")]
    required: NotRequired[Annotated[Count, Field(description="402: the credits that it needs")]]
    available: NotRequired[Annotated[Count, Field(description="402: the credits that there are")]]
    resets_at: NotRequired[Annotated[Time, Field(description="402: when the allowance covers it again")]]
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
    """Every answer of status 400 and above."""

    error: Annotated[Refusal, Field(description="What is wrong")]


class Health(Closed):
    """The API answers."""

    status: Annotated[Literal["ok"], Field(description="That it does")]


class OpenAPI(TypedDict):
    """An OpenAPI 3.1 document."""


# ── chats ─────────────────────────────────────────────────────────────────────────────────────────


class Source(Closed):
    """What an answer rests on."""

    title: Annotated[str, Field(description="What a reader sees of it")]
    url: NotRequired[Annotated[str, Field(description="Where it can be read")]]
    record_id: NotRequired[Annotated[str, Field(description="The tool call that brought it")]]


class ToolCall(Closed):
    """A tool call of a chat, without its result."""

    id: Annotated[str, Field(description="Its record, such as `q3-t1`")]
    tool: Annotated[str, Field(description="The tool's name")]
    input: Annotated[dict[str, Any], Field(description="What the model called it with")]
    is_error: Annotated[bool, Field(description="Whether the model was told of a failure")]
    seconds: Annotated[Seconds, Field(description="How long it took")]
    turn: Annotated[Count, Field(description="The model call that it belongs to, from 1")]


class Usage(Closed):
    """The tokens of a chat."""

    input_tokens: Annotated[Count, Field(description="Read by the model, neither from its cache nor into it")]
    output_tokens: Annotated[Count, Field(description="Written by the model")]
    cache_read_tokens: Annotated[Count, Field(description="Read from the cache")]
    cache_write_tokens: Annotated[Count, Field(description="Written to the cache")]
    summary_tokens: Annotated[
        Count, Field(description="Of the calls that wrote summaries; in no other figure")
    ]
    sent_tokens: Annotated[
        Count, Field(description="Estimate of what was sent, summed over the chat's model calls")
    ]
    full_history_tokens: Annotated[
        Count, Field(description="Estimate, made the same way, of what full histories would have been")
    ]


class Failure(Closed):
    """Why a chat failed."""

    code: Annotated[str, Field(description="Which kind of error, for programs")]
    message: Annotated[str, Field(description="What is wrong and what to do, for people; it may change")]


class Chat(Closed):
    """The chat object."""

    chat_id: Annotated[str, Field(description="The chat")]
    conversation_id: Annotated[str, Field(description="The conversation")]
    message_id: Annotated[str, Field(description="The record of the chat's query, such as `q3`")]
    profile: Annotated[str, Field(description="The agent that leads the conversation")]
    status: Annotated[
        Status,
        Field(
            description="`answered`: the answer is there and the summaries follow; `done`, `failed` and `cancelled` are final"
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
        Field(description="Why the answer ended; null while there is none, and if the chat failed"),
    ]
    response: Annotated[str | None, Field(description="The answer in Markdown; null while there is none")]
    summary: Annotated[str | None, Field(description="The answer's summary; null until the chat is done")]
    sources: Annotated[
        list[Source], Field(description="What the answer rests on, distinct, in order of first use")
    ]
    tool_calls: Annotated[list[ToolCall], Field(description="Its tool calls in order")]
    turns: Annotated[Count, Field(description="Model calls made")]
    credits_used: Annotated[Count, Field(description="Credits charged; 0 until it is settled")]
    credits_remaining: Annotated[
        Count, Field(description="Credits that the user had available when the chat last moved any")
    ]
    usage: Annotated[Usage, Field(description="Tokens")]
    created_at: Annotated[Time, Field(description="When it was made")]
    ended_at: Annotated[Time | None, Field(description="When it ended; null before that")]
    error: NotRequired[Annotated[Failure, Field(description="Only if it failed")]]


class Tokens(Closed):
    """Of calls of a model: read as fresh, written to its cache, read from it, and put out."""

    fresh: Annotated[Count, Field(description="Read as fresh")]
    cache_write: Annotated[Count, Field(description="Written to the cache")]
    cache_read: Annotated[Count, Field(description="Read from the cache")]
    output: Annotated[Count, Field(description="Written by the model")]


class ReceiptLine(Closed):
    """One thing that a chat did. `at`: when it began, null where that is not on record. Credits are charged in
    `chat` and `tool`, moved in `ledger`; dollars are the model's in `model`, `summary` and `fold`, in `tool_model` and
    `embedding` those of what the tool call `call` asked of models itself, and AWS's in `aws`. Figures that
    were never recorded are null or, with `estimated`, guessed."""

    kind: Annotated[
        Literal["chat", "model", "tool", "tool_model", "embedding", "summary", "fold", "ledger", "aws"],
        Field(description="What it is"),
    ]
    at: Annotated[Time | None, Field(description="When it began; null if that is not on record")]
    id: Annotated[str, Field(description="The line's own id in the receipt")]
    estimated: Annotated[bool, Field(description="Whether figures of the line are estimates")]
    dollars: Annotated[Annotated[float, Field(ge=0)], Field(description="In US dollars")]
    turn: NotRequired[Annotated[Count | None, Field(description="The model call that it belongs to, from 1")]]
    model: NotRequired[Annotated[str | None, Field(description="Which model; null if that is not on record")]]
    usage: NotRequired[Annotated[Tokens, Field(description="Tokens of the call")]]
    seconds: NotRequired[Annotated[Seconds | None, Field(description="How long it took")]]
    first_seconds: NotRequired[Annotated[Seconds | None, Field(description="Seconds to the first token")]]
    calls: NotRequired[Annotated[Count, Field(description="How many calls the line stands for")]]
    tries: NotRequired[Annotated[Count | None, Field(description="How often the call was tried")]]
    tool: NotRequired[Annotated[str, Field(description="The tool's name")]]
    call: NotRequired[Annotated[str, Field(description="The tool call that asked for it")]]
    ran: NotRequired[Annotated[bool, Field(description="Whether the tool was run")]]
    is_error: NotRequired[
        Annotated[bool | None, Field(description="Whether the model was told of a failure")]
    ]
    credits: NotRequired[Annotated[Count, Field(description="Credits that were charged")]]
    movement: NotRequired[Annotated[Movement, Field(description="What the ledger did")]]
    amount: NotRequired[
        Annotated[
            Annotated[float, Field(ge=0)],
            Field(description="How much: credits in `ledger`, units of `item` in `aws`"),
        ]
    ]
    available_after: NotRequired[
        Annotated[Count, Field(description="What the user had available afterwards")]
    ]
    item: NotRequired[Annotated[str, Field(description="What AWS charges for")]]


class ReceiptTotals(Closed):
    """Sums of the lines; `estimated_dollars` are part of `dollars`, and `usage` is without embeddings."""

    credits: Annotated[Count, Field(description="Credits that were charged")]
    usage: Annotated[Tokens, Field(description="Tokens, without embeddings")]
    model_dollars: Annotated[Annotated[float, Field(ge=0)], Field(description="Of models")]
    aws_dollars: Annotated[
        Annotated[float, Field(ge=0)] | None,
        Field(description="Of AWS, estimated; null if that cannot be said"),
    ]
    dollars: Annotated[Annotated[float, Field(ge=0)], Field(description="In all")]
    estimated_dollars: Annotated[
        Annotated[float, Field(ge=0)], Field(description="The part of `dollars` that is estimated")
    ]


class Receipt(Closed):
    """What a chat did and what each thing cost, in order. `recorded`: whether its release kept what a receipt needs;
    `price_known`: whether the price table has the model; `differences`: where the lines do not add up."""

    chat_id: Annotated[str, Field(description="The chat")]
    conversation_id: Annotated[str, Field(description="The conversation")]
    message_id: Annotated[str, Field(description="The record of the chat's query, such as `q3`")]
    user_id: Annotated[str, Field(description="The user: the token's `sub`")]
    profile: Annotated[str, Field(description="The agent that leads the conversation")]
    model: Annotated[str | None, Field(description="The model of its turns")]
    status: Annotated[Status, Field(description="As in the chat object")]
    stop: Annotated[str | None, Field(description="As in the chat object")]
    created_at: Annotated[Time, Field(description="When it was made")]
    ended_at: Annotated[Time | None, Field(description="When it ended; null before that")]
    recorded: Annotated[bool, Field(description="Whether the release that ran it kept what a receipt needs")]
    price_known: Annotated[bool | None, Field(description="Whether the price table has the model")]
    lines: Annotated[list[ReceiptLine], Field(description="What it did, in order")]
    totals: Annotated[ReceiptTotals, Field(description="Sums of the lines")]
    differences: Annotated[list[str], Field(description="Where the lines do not add up; normally empty")]


class StartedChat(Closed):
    """A chat that goes on, and where to follow it."""

    chat_id: Annotated[str, Field(description="The chat")]
    conversation_id: Annotated[str, Field(description="The conversation")]
    message_id: Annotated[str, Field(description="The record of the chat's query, such as `q3`")]
    status: Annotated[Literal["running"], Field(description="That it goes on")]
    url: Annotated[str, Field(description="Where the chat is read")]
    events_url: Annotated[str, Field(description="Where its events are")]


class Event(TypedDict):
    """A server-sent event; `dualtrack.api.event_data` has what each carries."""


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


class Conversation(Closed):
    """A conversation without its records.

    `listed_at` is its last query's time (else that of its creation), by which it is listed; `running_chat_id` is there
    while a chat runs in it. A fork names the conversation that it was made of, which may be gone, and the first query
    that it does not share.
    """

    conversation_id: Annotated[str, Field(description="The conversation")]
    title: Annotated[str, Field(description="As given, else how its first query begins")]
    profile: Annotated[str, Field(description="The agent that leads the conversation")]
    created_at: Annotated[Time, Field(description="When it was made")]
    updated_at: Annotated[Time, Field(description="When it was last changed")]
    listed_at: NotRequired[
        Annotated[Time, Field(description="When it was last asked something, by which it is listed")]
    ]
    running_chat_id: NotRequired[
        Annotated[str, Field(description="The chat that runs in it; only while one does")]
    ]
    forked_from: NotRequired[
        Annotated[str, Field(description="The conversation that it was made of, which may be gone")]
    ]
    forked_before: NotRequired[
        Annotated[str, Field(description="The first query that it does not share with it")]
    ]


class Conversations(Closed):
    """A page of the user's conversations."""

    conversations: Annotated[list[Conversation], Field(description="By last query, the latest first")]
    cursor: NotRequired[Annotated[str, Field(description="For the next page; not there on the last one")]]


class Attachment(Closed):
    """A file of a query or of a tool's result; its size in bytes; of a text file the record that it is."""

    media_type: Annotated[str, Field(description="Its type")]
    size: Annotated[Count, Field(description="In bytes")]
    name: NotRequired[Annotated[str, Field(description="What the file is called")]]
    record_id: NotRequired[Annotated[str, Field(description="Of a text file: the record that it is")]]


class Record(Closed):
    """A record of either track; a tool call has its result in place of content."""

    __pydantic_config__ = ConfigDict(  # type: ignore[misc]
        extra="forbid",
        json_schema_extra={"oneOf": [{"required": ["content"]}, {"required": ["result"]}]},
    )
    record_id: Annotated[str, Field(description="Its id in the conversation")]
    ref: NotRequired[Annotated[str, Field(description="What a summary or digest stands for")]]
    type: Annotated[RecordType, Field(description="What it is")]
    role: Annotated[Role, Field(description="Whose it is")]
    content: NotRequired[Annotated[str, Field(description="Its text; a tool call has `result` instead")]]
    attachments: NotRequired[Annotated[list[Attachment], Field(description="The files that came with it")]]
    created_at: Annotated[Time, Field(description="When it was made")]
    tool_use_id: NotRequired[Annotated[str, Field(description="The model's own id of the call")]]
    tool: NotRequired[Annotated[str, Field(description="The tool's name")]]
    input: NotRequired[Annotated[dict[str, Any], Field(description="What the model called the tool with")]]
    result: NotRequired[Annotated[str, Field(description="What the tool said")]]
    is_error: NotRequired[Annotated[bool, Field(description="Whether the model was told of a failure")]]
    seconds: NotRequired[Annotated[Seconds, Field(description="How long it took")]]
    turn: NotRequired[Annotated[Count, Field(description="The model call that it belongs to, from 1")]]
    stop: NotRequired[Annotated[str, Field(description="Of a response: why it ended")]]
    chat_id: NotRequired[Annotated[str, Field(description="The chat that it belongs to")]]
    next_offset: NotRequired[
        Annotated[
            Annotated[int, Field(ge=1)],
            Field(description="Where the next piece of its text begins; not there in the last one"),
        ]
    ]


class ConversationRecords(Conversation):
    """A conversation with a page of its records."""

    track: Annotated[Track, Field(description="Which track this is")]
    records: Annotated[list[Record], Field(description="In order")]
    cursor: NotRequired[Annotated[str, Field(description="For the next page; not there on the last one")]]


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class Tool(Closed):
    """What the model can call; its price in credits a call."""

    name: Annotated[str, Field(description="Its name")]
    description: Annotated[str, Field(description="What it is for")]
    input_schema: Annotated[dict[str, Any], Field(description="JSON Schema of what it is called with")]
    price: Annotated[
        Count, Field(description="In credits: a call, or once a chat for `retrieve_documentation`")
    ]
    kind: Annotated[Kind, Field(description="Which function runs it")]


class Profile(Closed):
    """How a conversation is led, and the names of its tools."""

    name: Annotated[str, Field(description="Its name")]
    description: Annotated[str, Field(description="What it is for")]
    model: Annotated[str, Field(description="The model that leads it")]
    max_turns: Annotated[Count, Field(description="Model calls that may use tools")]
    tools: Annotated[list[str], Field(description="The names of its tools")]
    suggestions: Annotated[list[str], Field(description="What one may ask first")]


class Tools(Closed):
    """What can be called at what price, and which profile offers it."""

    tools: Annotated[list[Tool], Field(description="Every tool, with its price")]
    profiles: Annotated[list[Profile], Field(description="The agents")]


# ── credits and connections ───────────────────────────────────────────────────────────────────────


class Daily(Closed):
    """A day's allowance."""

    limit: Annotated[Count, Field(description="The most that there may be in this time")]
    used: Annotated[Count, Field(description="What was charged of it; what is held is not in it")]
    remaining: Annotated[Count, Field(description="What is left of it")]
    resets_at: Annotated[Time, Field(description="When it begins anew")]


class Monthly(Closed):
    """A month's bound."""

    limit: Annotated[Count, Field(description="The most that the allowance gives in a month")]
    used: Annotated[Count, Field(description="What was charged of it; what is held is not in it")]
    resets_at: Annotated[Time, Field(description="When it begins anew")]


class Pack(Closed):
    """Credits that do not expire."""

    remaining: Annotated[Count, Field(description="What is left")]


class Credits(Closed):
    """A user's balance."""

    plan: Annotated[PlanName, Field(description="The user's plan")]
    available: Annotated[Count, Field(description="What can be spent now")]
    held: Annotated[Count, Field(description="Held for chats that run")]
    daily: Annotated[Daily, Field(description="The day's allowance")]
    monthly: Annotated[Monthly | None, Field(description="The month's bound; null if the plan has none")]
    pack: Annotated[Pack, Field(description="Credits that were bought or granted")]


class Entry(Closed):
    """What moved a user's credits."""

    entry_id: Annotated[str, Field(description="Its id")]
    at: Annotated[Time, Field(description="When")]
    kind: Annotated[Movement, Field(description="What moved them")]
    amount: Annotated[Count, Field(description="How many credits")]
    chat_id: NotRequired[Annotated[str, Field(description="The chat they were moved for")]]
    reason: NotRequired[Annotated[str, Field(description="As the operator gave it")]]
    available_after: Annotated[Count, Field(description="What was available afterwards")]


class Ledger(Closed):
    """A page of the user's ledger."""

    entries: Annotated[list[Entry], Field(description="Newest first")]
    cursor: NotRequired[Annotated[str, Field(description="For the next page; not there on the last one")]]


class SpendingDay(Closed):
    """Chats that ended on a day (UTC), what they were charged, and the dollars of their turns and tools, failed ones'
    too."""

    day: Annotated[
        Annotated[str, Field(json_schema_extra={"format": "date"})], Field(description="The day (UTC)")
    ]
    chats: Annotated[Count, Field(description="Chats that ended on it")]
    credits: Annotated[Count, Field(description="Credits that were charged")]
    dollars: Annotated[
        Annotated[float, Field(ge=0)],
        Field(description="US dollars of their turns and tools, failed ones' too"),
    ]


class Spending(Closed):
    """What a user's chats took, newest day first, days without chats left out. `complete`: false if the ledger has
    more lines for these days than are looked at; then the oldest day that is listed may lack some, and those before
    it are not there."""

    user_id: Annotated[str, Field(description="The user: the token's `sub`")]
    complete: Annotated[bool, Field(description="False if there are more lines than are looked at")]
    days: Annotated[list[SpendingDay], Field(description="Newest first, days without chats left out")]


class Connection(Closed):
    """Whether there is one."""

    connected: Annotated[bool, Field(description="Whether a token is stored")]


class Erasure(Closed):
    """That it has begun: the user is refused from now on, and all that is theirs goes."""

    status: Annotated[Literal["erasing"], Field(description="That it goes on")]


# ── corpora ───────────────────────────────────────────────────────────────────────────────────────


class Upload(Closed):
    """Where to put a file: by this method, with these headers and the size that was named, until it expires."""

    upload_id: Annotated[str, Field(description="What the job names it by")]
    name: Annotated[str, Field(description="As it was given")]
    method: Annotated[Literal["PUT"], Field(description="How it is put")]
    url: Annotated[str, Field(description="Where to; signed for this file")]
    headers: Annotated[dict[str, str], Field(description="What has to be sent along")]
    expires_at: Annotated[Time, Field(description="Until when")]


class Uploads(Closed):
    """An address for each file, in order."""

    uploads: Annotated[list[Upload], Field(description="In the order of the request")]


class JobFile(Closed):
    """What became of a file. A refused one has the reason, and the bad rows where it has rows; the others have
    what was read of them; `outcome` is there once the job is done."""

    name: Annotated[str, Field(description="Its name")]
    state: Annotated[Literal["waiting", "read", "refused"], Field(description="How far it is")]
    reason: NotRequired[Annotated[str, Field(description="Why it was refused")]]
    problems: NotRequired[Annotated[list[str], Field(description="Of a refused one: its bad rows")]]
    title: NotRequired[Annotated[str, Field(description="The title that was read in it")]]
    counts: NotRequired[Annotated[dict[str, Count], Field(description="How much of what was read in it")]]
    outcome: NotRequired[Annotated[Outcome, Field(description="What it changed, once the job is done")]]


class CorpusJob(Closed):
    """A change of a corpus: files that are taken in, titles that are removed, and how far it is."""

    job_id: Annotated[str, Field(description="The job")]
    status: Annotated[JobStatus, Field(description="How far it is; `done` and `failed` are final")]
    created_at: Annotated[Time, Field(description="When it was made")]
    ended_at: Annotated[Time | None, Field(description="When it ended; null before that")]
    reset: Annotated[bool, Field(description="Whether all else in the corpus goes")]
    removes: Annotated[list[str], Field(description="Titles that are removed")]
    embedded: Annotated[Count, Field(description="Passages that have vectors so far")]
    to_embed: Annotated[Count, Field(description="Passages that need them")]
    files: Annotated[list[JobFile], Field(description="What becomes of each file")]
    url: Annotated[str, Field(description="Where the job is read")]
    error: NotRequired[Annotated[str, Field(description="Why it failed")]]


class CorpusDocument(Closed):
    """A document of a corpus; its title is the key, and the file's name is where it comes from."""

    document_id: Annotated[str, Field(description="For removing it")]
    title: Annotated[str, Field(description="Its key in the corpus")]
    name: Annotated[str, Field(description="The file that it came from")]
    counts: Annotated[dict[str, Count], Field(description="How much of what there is in it")]
    updated_at: Annotated[Time, Field(description="When it was last changed")]


class GraphProperty(Closed):
    """A property of nodes or relationships."""

    name: Annotated[str, Field(description="Its name")]
    type: Annotated[Literal["STRING", "INT64", "DOUBLE", "BOOL"], Field(description="What its values are")]


class GraphLabel(Closed):
    """A label, with the number of its nodes."""

    name: Annotated[str, Field(description="Its name")]
    properties: Annotated[list[GraphProperty], Field(description="What they have")]
    count: Annotated[Count, Field(description="How many nodes have it")]


class GraphType(Closed):
    """A relationship type: the pairs of labels that it goes from and to, and the number of its relationships."""

    name: Annotated[str, Field(description="Its name")]
    ends: Annotated[list[list[str]], Field(description="Pairs of labels that it goes from and to")]
    properties: Annotated[list[GraphProperty], Field(description="What they have")]
    count: Annotated[Count, Field(description="How many there are")]


class GraphSchema(Closed):
    """What is in a graph."""

    labels: Annotated[list[GraphLabel], Field(description="Of nodes")]
    types: Annotated[list[GraphType], Field(description="Of relationships")]


class Corpus(Closed):
    """What is published, in which version, with which model's vectors (empty: keywords alone). `schema`: of the graph
    alone, null before the first load."""

    corpus: Annotated[str, Field(description="Which one")]
    version: Annotated[str | None, Field(description="Which version is published; null before the first")]
    model: Annotated[str, Field(description="Whose vectors it has; empty: it is searched by words alone")]
    counts: Annotated[dict[str, Count], Field(description="How much of what there is in it")]
    updated_at: Annotated[Time | None, Field(description="When it was published")]
    documents: Annotated[list[CorpusDocument], Field(description="What is in it")]
    schema: NotRequired[
        Annotated[GraphSchema | None, Field(description="Of the graph alone; null before the first load")]
    ]
