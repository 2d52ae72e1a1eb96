"""The types of the API's answers (CONTRACT 4).

What is built for an answer is built as its type, so that the type checker compares them, and a client may read it as
such; `dualtrack.api.openapi` writes the OpenAPI document from them. In `Annotated`, a text is the description, a
`Keyword` one more of JSON Schema. An object has no fields but the declared ones, except where `KEYWORDS` says
so. Only ``typing`` is needed: a program that knows the types alone imports them for the type checker.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypedDict

from dualtrack.frozen import JsonObject
from dualtrack.tool_values import ToolKind
from dualtrack.vocabulary import (
    CallKind,
    CallStatus,
    CapName,
    ChatStatus,
    DecidedBy,
    Effect,
    FileState,
    Form,
    JobStatus,
    MovementKind,
    Outcome,
    PlanName,
    Policy,
    RecordType,
    Role,
    Scope,
    Stop,
    Track,
)


class Keyword(NamedTuple):
    """A keyword of JSON Schema beside the type."""

    name: str
    value: str | int


Count = Annotated[int, Keyword("minimum", 0)]
Number = Annotated[float, Keyword("minimum", 0)]
Dollars = Number
Seconds = Number
Time = Annotated[str, Keyword("format", "date-time")]


class PlanOffer(TypedDict):
    """A plan and its price."""

    name: Annotated[str, "Its name"]
    credits_per_day: Annotated[Count, "Its allowance"]
    credits_per_month: Annotated[Count | None, "The most of it in a month; null if there is no such limit"]
    dollars_per_month: Annotated[Count, "Its price in US dollars"]


class PackOffer(TypedDict):
    """A pack of credits, which never expire, and its price."""

    credits: Annotated[Count, "Its credits"]
    dollars: Annotated[Count, "Its price in US dollars"]


class Upgrade(TypedDict):
    """How to get more credits."""

    message: Annotated[str, "In words"]
    plans: Annotated[Sequence[PlanOffer], "The plans"]
    packs: Annotated[Sequence[PackOffer], "The packs"]


class Details(TypedDict):
    """What some refusals say besides."""

    required: NotRequired[
        Annotated[Number, "402: the credits that are needed, or the US dollars for a cap in dollars"]
    ]
    available: NotRequired[Annotated[Count, "402: the credits that are available"]]
    resets_at: NotRequired[
        Annotated[
            Time | None, "402: when the allowance or the key's cap covers them again; null if it never does"
        ]
    ]
    cap: NotRequired[Annotated[CapName, "402 key_cap_reached: the cap of the API key"]]
    limit: NotRequired[Annotated[Number, "402 key_cap_reached: the cap, in credits or US dollars"]]
    used: NotRequired[Annotated[Number, "402 key_cap_reached: what was used of it"]]
    held: NotRequired[Annotated[Number, "402 key_cap_reached: what running chats hold of it"]]
    upgrade: NotRequired[Annotated[Upgrade, "402: plans and packs with their prices"]]
    retry_after: NotRequired[Annotated[Count, "429: seconds to wait, as in the header Retry-After"]]
    scope: NotRequired[Annotated[Scope, "403: the scope that the API key lacks"]]
    chat_id: NotRequired[
        Annotated[str, "409 conversation_busy: the chat that is running in the conversation"]
    ]
    url: NotRequired[Annotated[str, "409 conversation_busy: the path of that chat"]]


class Refusal(Details):
    """The content of an error; fields may be added."""

    code: Annotated[str, "The kind of error, for programs"]
    message: Annotated[str, "What is wrong and what to do, for people; it may change"]


class Error(TypedDict):
    """Every answer with status 400 or above."""

    error: Annotated[Refusal, "What is wrong"]


class Health(TypedDict):
    """The API is up."""

    status: Annotated[Literal["ok"], "Always `ok`"]


class OpenAPI(TypedDict):
    """An OpenAPI 3.1 document."""

    openapi: Annotated[str, "Always `3.1.0`"]
    info: Annotated[JsonObject, "Title and version of the API"]
    servers: Annotated[Sequence[JsonObject], "Its address, relative to the document"]
    tags: Annotated[Sequence[JsonObject], "The groups of its operations"]
    paths: Annotated[JsonObject, "Its operations"]
    components: Annotated[JsonObject, "Schemas, parameters and how to authenticate"]
    security: Annotated[
        Sequence[JsonObject], "How to authenticate, where an operation does not say otherwise"
    ]


# ── chats ─────────────────────────────────────────────────────────────────────────────────────────


class Source(TypedDict):
    """A source of an answer."""

    title: Annotated[str, "The title to show"]
    url: NotRequired[Annotated[str, "Its address"]]
    record_id: NotRequired[Annotated[str, "The tool call that returned it"]]


class ToolCall(TypedDict):
    """A tool call of a chat, without its result."""

    id: Annotated[str, "Its record, such as `q3-t1`"]
    tool: Annotated[str, "The tool's name"]
    input: Annotated[JsonObject, "The arguments from the model"]
    is_error: Annotated[bool, "Whether the result was an error"]
    status: Annotated[
        CallStatus, "`unknown`: it had begun, and its result never came: it may have taken effect"
    ]
    seconds: Annotated[Seconds, "How long it took"]
    turn: Annotated[Count, "The model call that it belongs to, from 1"]
    edited: NotRequired[
        Annotated[bool, "Only if it was approved with other arguments, which are those in `input`"]
    ]


class Usage(TypedDict):
    """The tokens of a chat."""

    input_tokens: Annotated[Count, "Input tokens outside the model's cache"]
    output_tokens: Annotated[Count, "Written by the model"]
    cache_read_tokens: Annotated[Count, "Read from the cache"]
    cache_write_tokens: Annotated[Count, "Written to the cache"]
    summary_tokens: Annotated[Count, "Of the calls that wrote summaries; not part of any other figure"]


class Memory(TypedDict):
    """What the model calls of turns, summaries and digests cost, without those of tools; and an estimate of what they
    would have cost with every record whole in the messages, cached by the service's rules."""

    dollars: Annotated[Dollars, "This chat's, in US dollars"]
    full_history_dollars: Annotated[Dollars, "The same with the full history"]
    conversation_dollars: Annotated[Dollars, "Those of the conversation up to and with this chat"]
    conversation_full_history_dollars: Annotated[Dollars, "The same with the full history"]
    estimated: Annotated[bool, "Always true: the figures of the full history are estimates"]
    beyond_window: Annotated[
        bool, "Whether the full history has outgrown the model's window; it grows no more then"
    ]
    summaries_due: Annotated[bool, "Whether calls for summaries are to come, and not counted yet"]


class Failure(TypedDict):
    """Why a chat failed."""

    code: Annotated[str, "The kind of error, for programs"]
    message: Annotated[str, "What is wrong and what to do, for people; it may change"]


class OpenCall(TypedDict):
    """A tool call that waits for a decision: somebody's leave, the client's result, the user's answer."""

    id: Annotated[str, "The call's record once it has a result, such as `q1-t1`"]
    tool: Annotated[str, "The tool's name"]
    input: Annotated[JsonObject, "The arguments from the model"]
    kind: Annotated[CallKind, "What it waits for"]
    effect: NotRequired[Annotated[Effect, "Of an approval: what the call would do to the world"]]
    allowable: NotRequired[
        Annotated[bool, "Approval may be given `for` the whole conversation; absent if not"]
    ]


class ChatPause(TypedDict):
    """What a paused chat waits for."""

    calls: Annotated[Sequence[OpenCall], "The calls that are not decided yet, in the model's order"]
    expires_at: Annotated[Time, "When they count as not decided in time"]


class PausedChat(ChatPause):
    """A chat in the list of open decisions."""

    chat_id: Annotated[str, "The chat"]
    conversation_id: Annotated[str, "Its conversation"]
    message_id: Annotated[str, "The record of its query, such as `q3`"]
    profile: Annotated[str, "The conversation's agent"]
    paused_at: Annotated[Time, "Since when it waits"]


class Pauses(TypedDict):
    """Open decisions."""

    pauses: Annotated[Sequence[PausedChat], "Oldest chat first"]


class DecidedChat(TypedDict):
    """What somebody may see of a chat who may decide on its calls and not read it."""

    chat_id: Annotated[str, "The chat"]
    conversation_id: Annotated[str, "The conversation"]
    message_id: Annotated[str, "The record of the chat's query, such as `q3`"]
    profile: Annotated[str, "The conversation's agent"]
    status: Annotated[
        ChatStatus,
        "`paused`: it waits for decisions on tool calls; `answered`: complete, while what later queries are sent of it "
        "is being written; `done`, `failed` and `cancelled` are final",
    ]
    pause: NotRequired[Annotated[ChatPause, "Only while it is paused"]]


class Declined(TypedDict):
    """That the model's service declined to answer."""

    category: Annotated[str | None, "The category of its policy, in its own word; null if it names none"]


class ExplainedDecline(Declined):
    """The same for who builds the agent."""

    explanation: Annotated[str | None, "Why, in the service's own words; null if it does not say"]


class Chat(DecidedChat):
    """The chat object."""

    stop: Annotated[
        Stop | None,
        "Why the answer ended; null until then, and if the chat failed",
    ]
    response: Annotated[str | None, "The answer in Markdown; null until there is one"]
    output: Annotated[
        Any,
        "The answer as a JSON value, where it had to fit a schema and does; else null",
    ]
    summary: Annotated[
        str | None, "The answer as later queries see it, as `summary_form` says; null until the chat is done"
    ]
    summary_form: Annotated[
        Form | None,
        "What `summary` is: the `note` that came with the answer, a `summary`, an `extract`, or the `whole` answer",
    ]
    summary_made: Annotated[
        bool,
        "False until the chat is done, and where its query is sent on in the messages in which it was sent",
    ]
    sources: Annotated[Sequence[Source], "The answer's sources, distinct, in order of first use"]
    tool_calls: Annotated[Sequence[ToolCall], "Its tool calls in order"]
    turns: Annotated[Count, "Number of model calls"]
    credits_used: Annotated[Count, "Credits charged; 0 until the chat is settled"]
    credits_remaining: Annotated[
        Count, "The user's available credits after the chat last held or charged any"
    ]
    usage: Annotated[Usage, "Tokens"]
    memory: Annotated[Memory, "What this memory costs, beside a full history"]
    fictional: Annotated[bool, "Whether the offline model answered: tokens and dollars are fictional"]
    created_at: Annotated[Time, "When it was created"]
    ended_at: Annotated[Time | None, "When it ended; null before that"]
    error: NotRequired[Annotated[Failure, "Only if it failed"]]
    refusal: NotRequired[Annotated[Declined, "Only if the model's service declined to answer"]]


class Tokens(TypedDict):
    """The tokens of model calls."""

    fresh: Annotated[Count, "Input outside the cache"]
    cache_write: Annotated[Count, "Written to the cache"]
    cache_read: Annotated[Count, "Read from the cache"]
    output: Annotated[Count, "Written by the model"]


TokenKind = Literal["fresh", "cache_write", "cache_read", "output"]
LineKind = Literal[
    "chat",
    "model",
    "wait",
    "pause",
    "tool",
    "tool_model",
    "embedding",
    "summary",
    "fold",
    "title",
    "ledger",
    "aws",
]


class LineRates(TypedDict):
    """US dollars for a million tokens, by which a line is counted."""

    fresh: Annotated[
        Dollars, "Of tokens of the prompt that are neither read from the cache nor written to it"
    ]
    cache_write: Annotated[Dollars, "Written to the cache"]
    cache_read: Annotated[Dollars, "Read from the cache"]
    output: Annotated[Dollars, "Of the answer"]
    known: Annotated[bool, "Whether they are the model's own; else those of its maker's dearest model"]


class CacheMiss(TypedDict):
    """Why the model's service could not read a call's prompt from its cache as far as the call before had sent it."""

    reason: Annotated[
        str,
        "Its own word, such as `system_changed`, `tools_changed`, `messages_changed`, `model_changed`; with "
        "`previous_message_not_found` and `unavailable` it says that it cannot tell",
    ]
    tokens: Annotated[Count, "About how many tokens it had to read anew; 0 if it does not say"]


class ReceiptLine(TypedDict):
    """A line of a receipt. Lines of kind `chat` and `tool` have the credits charged, those of kind `ledger` the credits
    moved. Dollars are for the model in `model`, `summary`, `fold` and `title`, for models that the tool call `call`
    used in `tool_model` and `embedding`, and for AWS in `aws`. A `wait` is a turn's waits for a busy model: `tries`
    calls that it refused, and the `seconds` waited after them. A `pause` is the `seconds` that `calls` of a turn waited
    for decisions, and `by` whom it ended. Figures that were not recorded are null, or estimated if `estimated` is
    set."""

    kind: Annotated[LineKind, "Its kind"]
    at: Annotated[Time | None, "When it began; null if not recorded"]
    id: Annotated[str, "The line's own id in the receipt"]
    estimated: Annotated[bool, "Whether any of its figures is an estimate"]
    dollars: Annotated[Dollars, "In US dollars"]
    turn: NotRequired[Annotated[Count | None, "The model call that it belongs to, from 1"]]
    model: NotRequired[Annotated[str | None, "The model; null if not recorded"]]
    withdrawn: NotRequired[
        Annotated[str, "The model of the calls before, if it was withdrawn while the chat was paused"]
    ]
    usage: NotRequired[Annotated[Tokens, "Tokens of the call"]]
    rates: NotRequired[Annotated[LineRates, "Its prices on that day, kept with the call"]]
    seconds: NotRequired[Annotated[Seconds | None, "How long it took"]]
    first_seconds: NotRequired[Annotated[Seconds | None, "Seconds to the first token"]]
    calls: NotRequired[Annotated[Count, "Number of calls in the line"]]
    tries: NotRequired[Annotated[Count | None, "Number of attempts at the call"]]
    cache_miss: NotRequired[
        Annotated[
            CacheMiss | None,
            "Of a turn that goes on from an earlier call, what the model's service says of its cache; null if nothing "
            "before it had changed, absent if it was not asked or has not said",
        ]
    ]
    missing: NotRequired[Annotated[Count, "Summaries that the model did not make: extracts stand for them"]]
    tool: NotRequired[Annotated[str, "The tool's name"]]
    call: NotRequired[Annotated[str, "The tool call that used the model"]]
    ran: NotRequired[Annotated[bool, "Whether the tool was run"]]
    is_error: NotRequired[Annotated[bool | None, "Whether the result was an error"]]
    credits: NotRequired[Annotated[Count, "Credits charged"]]
    by: NotRequired[Annotated[DecidedBy | Literal["cancelled"], "What ended the pause"]]
    movement: NotRequired[Annotated[MovementKind, "The kind of ledger entry"]]
    amount: NotRequired[Annotated[Number, "Credits in `ledger`, units of `item` in `aws`"]]
    available_after: NotRequired[Annotated[Count, "The user's available credits afterwards"]]
    item: NotRequired[Annotated[str, "What AWS charges for"]]


class ReceiptTotals(TypedDict):
    """Sums of the lines."""

    credits: Annotated[Count, "Credits charged"]
    usage: Annotated[Tokens, "Tokens, without embeddings"]
    model_dollars: Annotated[Dollars, "For models"]
    aws_dollars: Annotated[Dollars | None, "For AWS, estimated; null if unknown"]
    dollars: Annotated[Dollars, "In total"]
    estimated_dollars: Annotated[Dollars, "The part of `dollars` that is estimated"]


class Receipt(TypedDict):
    """What a chat did and what each step cost, in order."""

    chat_id: Annotated[str, "The chat"]
    conversation_id: Annotated[str, "The conversation"]
    message_id: Annotated[str, "The record of the chat's query, such as `q3`"]
    user_id: Annotated[str, "The user: the token's `sub`"]
    key_id: Annotated[str | None, "The API key that it was started with"]
    profile: Annotated[str, "The conversation's agent"]
    model: Annotated[str | None, "The model of its turns"]
    status: Annotated[ChatStatus, "As in the chat object"]
    stop: Annotated[Stop | None, "As in the chat object"]
    created_at: Annotated[Time, "When it was created"]
    ended_at: Annotated[Time | None, "When it ended; null before that"]
    price_known: Annotated[
        bool | None, "Whether every model in it has a known price; else its dollars are a guess"
    ]
    fictional: Annotated[bool, "Whether the offline model answered: tokens and dollars are fictional"]
    lines: Annotated[Sequence[ReceiptLine], "Its steps in order"]
    totals: Annotated[ReceiptTotals, "Sums of the lines"]
    memory: Annotated[Memory, "As in the chat object"]
    differences: Annotated[Sequence[str], "Where the lines do not add up; normally empty"]
    tools_changed: NotRequired[
        Annotated[
            bool,
            "True, if its client brought other tools than the query before: nothing of the conversation was read from "
            "the model's cache",
        ]
    ]
    refusal: NotRequired[Annotated[ExplainedDecline, "Only if the model's service declined to answer"]]
    for_operator: NotRequired[
        Annotated[
            str,
            "Why the chat failed, in the service's own words, and the setting to check: for administrators",
        ]
    ]


class StartedChat(TypedDict):
    """A running chat, and where to follow it."""

    chat_id: Annotated[str, "The chat"]
    conversation_id: Annotated[str, "The conversation"]
    message_id: Annotated[str, "The record of the chat's query, such as `q3`"]
    status: Annotated[Literal["running"], "Always `running`"]
    url: Annotated[str, "The path of the chat"]
    events_url: Annotated[str, "The path of its events"]


class Event(TypedDict):
    """A server-sent event; `dualtrack.event_data` has the type of each event's data."""


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


class Conversation(TypedDict):
    """A conversation without its records.

    Conversations are listed by `listed_at`: the time of the last query, else of creation. Only a fork has `forked_from`
    and `forked_before`.
    """

    conversation_id: Annotated[str, "The conversation"]
    title: Annotated[str, "The user's title, else the model's, else the beginning of its first query"]
    profile: Annotated[str, "Its agent"]
    created_at: Annotated[Time, "When it was created"]
    updated_at: Annotated[Time, "When it was last changed"]
    listed_at: Annotated[Time, "When its last query began, else when it was created"]
    queries: Annotated[int, "How many it has; the last one is the record q<queries>"]
    allowed: Annotated[Sequence[str], "Tools that its user lets run in it without being asked again"]
    running_chat_id: NotRequired[Annotated[str, "The chat that is running in it; absent if none is"]]
    forked_from: NotRequired[Annotated[str, "The conversation that it was forked from, which may be deleted"]]
    forked_before: NotRequired[Annotated[str, "The first query that it does not share with `forked_from`"]]


class ListPage(TypedDict):
    """A page of a list."""

    cursor: NotRequired[Annotated[str, "For the next page; absent on the last page"]]


class Conversations(ListPage):
    """A page of the user's conversations."""

    conversations: Annotated[Sequence[Conversation], "By last query, the latest first"]


class Attachment(TypedDict):
    """A file of a query or of a tool's result."""

    media_type: Annotated[str, "Its type"]
    size: Annotated[Count, "In bytes"]
    name: NotRequired[Annotated[str, "The file's name"]]
    record_id: NotRequired[Annotated[str, "For a text file: the record with its text"]]


class Record(TypedDict):
    """A record of either track; a tool call has `result` instead of `content`."""

    record_id: Annotated[str, "Its id in the conversation"]
    ref: NotRequired[Annotated[str, "The records that a summary or digest replaces"]]
    size: NotRequired[Annotated[Count, "For a summary: the bytes of the record, unless it has all of it"]]
    form: NotRequired[
        Annotated[
            Form,
            "On the summarised track: the `whole` record, the model's `note` on it, a `summary`, or an `extract`",
        ]
    ]
    type: Annotated[RecordType, "The type of the record"]
    role: Annotated[Role, "Its author"]
    content: NotRequired[Annotated[str, "Its text; a tool call has `result` instead"]]
    thinking_characters: NotRequired[
        Annotated[Count, "How much of its text, from the first character, is the model's thinking"]
    ]
    attachments: NotRequired[Annotated[Sequence[Attachment], "Its files"]]
    created_at: Annotated[Time, "When it was created"]
    tool_use_id: NotRequired[Annotated[str, "The model's own id of the call"]]
    tool: NotRequired[Annotated[str, "The tool's name"]]
    input: NotRequired[Annotated[JsonObject, "The arguments from the model"]]
    result: NotRequired[Annotated[str, "The tool's result"]]
    is_error: NotRequired[Annotated[bool, "Whether the result was an error"]]
    status: NotRequired[Annotated[CallStatus, "For a tool call: what became of it"]]
    seconds: NotRequired[Annotated[Seconds, "How long it took"]]
    turn: NotRequired[Annotated[Count, "The model call that it belongs to, from 1"]]
    stop: NotRequired[Annotated[Stop, "For a response: why it ended"]]
    left_out: NotRequired[
        Annotated[
            str, "For a response: the query whose results were left out, so that the service would answer"
        ]
    ]
    continues: NotRequired[
        Annotated[str, "For a query that is no message of the user's: the answer that goes on"]
    ]
    chat_id: NotRequired[Annotated[str, "The chat that it belongs to"]]
    next_offset: NotRequired[
        Annotated[
            Annotated[int, Keyword("minimum", 1)],
            "Where the next piece of its text begins; absent in the last piece",
        ]
    ]


class ConversationRecords(Conversation, ListPage):
    """A conversation with a page of its records."""

    track: Annotated[Track, "The track"]
    records: Annotated[Sequence[Record], "In order"]


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class Tool(TypedDict):
    """A tool that the model can call."""

    name: Annotated[str, "Its name"]
    description: Annotated[str, "What it is for"]
    input_schema: Annotated[JsonObject, "JSON Schema of its arguments"]
    price: Annotated[
        Count, "Credits per call; for `retrieve_documentation`, once per chat; 0 for a question to the user"
    ]
    kind: Annotated[ToolKind, "The function that runs it; `question`: the user answers it"]
    effect: Annotated[
        Effect, "What it does to the world; the most of it where agents trust its server differently"
    ]
    repeatable: Annotated[bool, "Whether running it twice is harmless"]
    searched: NotRequired[
        Annotated[
            bool,
            "True of a tool that an agent with many finds by `find_tools` and calls by `use_tool`; not sent with each request",
        ]
    ]


class History(TypedDict):
    """How an agent's past queries are sent."""

    policy: Annotated[Policy, "`dual_track`: what is long in short; the others send the last records in full"]


class Profile(TypedDict):
    """An agent: its model, its tools and its memory."""

    name: Annotated[str, "Its name"]
    description: Annotated[str, "What it is for"]
    model: Annotated[str, "Its model"]
    max_turns: Annotated[Count, "Maximum model calls that may use tools"]
    tools: Annotated[Sequence[str], "The names of its tools"]
    history: Annotated[History, "Its memory"]
    suggestions: Annotated[Sequence[str], "Suggested first questions"]


class LeftOutTool(TypedDict):
    """A tool of an MCP server that cannot be offered."""

    server: Annotated[str, "The server"]
    name: Annotated[str, "The server's own name of it; `*` for several"]
    reason: Annotated[str, "Why"]


class ChangedTool(TypedDict):
    """A tool of an MCP server that has changed, or is new, since the server's tools were accepted."""

    server: Annotated[str, "The server"]
    name: Annotated[str, "The tool's name"]
    description: Annotated[str, "What its server says of it now"]
    input_schema: Annotated[JsonObject, "JSON Schema of its arguments"]
    effect: Annotated[Effect, "What it does to the world, once it is accepted"]
    repeatable: Annotated[bool, "Whether running it twice is harmless, once it is accepted"]
    mark: Annotated[str, "Accepts it as it is shown here"]


class ChangedTools(TypedDict):
    """The tools of MCP servers that are not accepted."""

    changed: Annotated[Sequence[ChangedTool], "Until they are accepted, their calls ask for approval"]


class Tools(TypedDict):
    """The tools with their prices, and the profiles that offer them."""

    tools: Annotated[Sequence[Tool], "Every tool, with its price"]
    profiles: Annotated[Sequence[Profile], "The agents"]
    left_out: NotRequired[
        Annotated[Sequence[LeftOutTool], "For administrators: tools of MCP servers that cannot be offered"]
    ]
    changed: NotRequired[
        Annotated[Sequence[ChangedTool], "For administrators: tools of MCP servers that are not accepted"]
    ]


# ── credits and connections ───────────────────────────────────────────────────────────────────────


class Daily(TypedDict):
    """The daily allowance."""

    limit: Annotated[Count, "Credits per day"]
    used: Annotated[Count, "Credits charged; without those held"]
    remaining: Annotated[Count, "Credits left"]
    resets_at: Annotated[Time, "When it is reset"]


class Monthly(TypedDict):
    """The monthly limit of the allowance."""

    limit: Annotated[Count, "Maximum credits from the allowance per month"]
    used: Annotated[Count, "Credits charged; without those held"]
    resets_at: Annotated[Time, "When it is reset"]


class Pack(TypedDict):
    """Credits that do not expire."""

    remaining: Annotated[Count, "Credits left"]


class Credits(TypedDict):
    """A user's balance."""

    plan: Annotated[PlanName, "The user's plan"]
    available: Annotated[Count, "Credits that can be spent now"]
    held: Annotated[Count, "Credits held for running chats"]
    daily: Annotated[Daily, "The daily allowance"]
    monthly: Annotated[Monthly | None, "The monthly limit; null if the plan has none"]
    pack: Annotated[Pack, "Credits that were bought or granted"]


class KeyCaps(TypedDict):
    """What an API key may spend; without a cap as much as its owner's account has."""

    credits_day: NotRequired[Annotated[Count, "Credits a day (UTC)"]]
    credits_total: NotRequired[Annotated[Count, "Credits in all"]]
    dollars_day: NotRequired[Annotated[Dollars, "US dollars of model calls a day (UTC)"]]
    dollars_total: NotRequired[Annotated[Dollars, "US dollars of model calls in all"]]


class KeySums(TypedDict):
    """What was used or is held under an API key."""

    credits_day: Annotated[Count, "Credits of today (UTC)"]
    credits_total: Annotated[Count, "Credits in all"]
    dollars_day: Annotated[Dollars, "US dollars of today's model calls (UTC)"]
    dollars_total: Annotated[Dollars, "US dollars of model calls in all"]


class KeyFigures(TypedDict):
    """What an API key may spend, and what it has spent."""

    caps: Annotated[KeyCaps, "Its caps"]
    used: Annotated[KeySums, "What its chats have used"]
    held: Annotated[KeySums, "What its running chats hold"]


class Key(KeyFigures):
    """An API key, without its secret."""

    key_id: Annotated[str, "Its id, which lines of the ledger and receipts name"]
    name: Annotated[str, "Its name"]
    scopes: Annotated[Sequence[Scope], "What it may do"]
    profiles: Annotated[Sequence[str], "The agents that it may use; none: all"]
    acts_for: Annotated[Literal["any"] | None, "`any`: its requests name an end user each"]
    created_at: Annotated[Time, "When it was made"]
    expires_at: Annotated[Time | None, "When it expires; null: it does not"]
    last_used_at: Annotated[Time | None, "Its last request; null: there was none"]


class NewKey(Key):
    """An API key with its secret, which is shown this once."""

    key: Annotated[str, "The key itself, dt_…: it cannot be shown again"]


class Keys(TypedDict):
    """The API keys of a user."""

    keys: Annotated[Sequence[Key], "The oldest first"]


class Entry(TypedDict):
    """A change of a user's credits."""

    entry_id: Annotated[str, "Its id"]
    at: Annotated[Time, "When it happened"]
    kind: Annotated[MovementKind, "The kind of change"]
    amount: Annotated[Count, "Number of credits"]
    chat_id: NotRequired[Annotated[str, "The chat that caused it"]]
    key_id: NotRequired[Annotated[str, "The API key that it was made under"]]
    reason: NotRequired[Annotated[str, "The operator's reason"]]
    available_after: Annotated[Count, "Available credits afterwards"]


class Ledger(ListPage):
    """A page of the user's ledger."""

    entries: Annotated[Sequence[Entry], "Newest first"]


class SpendingDay(TypedDict):
    """A user's spending on a day (UTC)."""

    day: Annotated[Annotated[str, Keyword("format", "date")], "The day (UTC)"]
    chats: Annotated[Count, "Chats that ended on the day"]
    credits: Annotated[Count, "Credits charged for them"]
    dollars: Annotated[
        Dollars,
        "US dollars for their turns and tools, including failed chats; of chats by an API key for summaries too",
    ]


class KeySpending(TypedDict):
    """The spending under an API key, also of one that was revoked."""

    key_id: Annotated[str, "The key"]
    days: Annotated[Sequence[SpendingDay], "Newest first, without days that have no chats"]


class ProfileSpending(TypedDict):
    """The spending with an agent."""

    profile: Annotated[str, "The agent's profile"]
    days: Annotated[Sequence[SpendingDay], "Newest first, without days that have no chats"]


class Spending(TypedDict):
    """What a user's chats cost, by day. `complete` is false if the ledger has more entries for these days than are
    read; then the oldest listed day may be incomplete, and earlier days are missing."""

    user_id: Annotated[str, "The user: the token's `sub`"]
    complete: Annotated[bool, "False if not all ledger entries of these days were read"]
    days: Annotated[Sequence[SpendingDay], "Newest first, without days that have no chats"]
    keys: Annotated[Sequence[KeySpending], "What of it was spent under each API key"]
    profiles: Annotated[Sequence[ProfileSpending], "What of it was spent with each agent"]


class Connection(TypedDict):
    """Whether the account is connected."""

    connected: Annotated[bool, "Whether a token is stored"]


class Erasure(TypedDict):
    """The erasure has begun: the user is refused from now on, and all their data is deleted."""

    status: Annotated[Literal["erasing"], "Always `erasing`"]


# ── corpora ───────────────────────────────────────────────────────────────────────────────────────


class Upload(TypedDict):
    """How to upload a file: the request to send, with exactly the announced bytes, before it expires."""

    upload_id: Annotated[str, "The id of the upload, for the job or the message"]
    name: Annotated[str, "The file's name, which may be empty"]
    method: Annotated[Literal["PUT"], "The request's method"]
    url: Annotated[str, "The address, signed for this file"]
    headers: Annotated[Mapping[str, str], "Headers to send"]
    expires_at: Annotated[Time, "When the address expires"]


class Uploads(TypedDict):
    """An address for each file."""

    uploads: Annotated[Sequence[Upload], "In the order of the request"]


class JobFile(TypedDict):
    """A file of a job. A refused file has a reason, and its invalid rows if it has rows; the others have a title and
    counts."""

    name: Annotated[str, "Its name"]
    state: Annotated[FileState, "Its state"]
    reason: NotRequired[Annotated[str, "Why it was refused"]]
    problems: NotRequired[Annotated[Sequence[str], "The invalid rows of a refused file"]]
    title: NotRequired[Annotated[str, "The document's title"]]
    counts: NotRequired[
        Annotated[Mapping[str, Count], "What was read, such as lessons or nodes: number of each"]
    ]
    outcome: NotRequired[Annotated[Outcome, "What it changed; only once the job is done"]]


class CorpusJob(TypedDict):
    """A job that changes a corpus: it adds files and removes documents."""

    job_id: Annotated[str, "The job"]
    status: Annotated[JobStatus, "Its status; `done` and `failed` are final"]
    created_at: Annotated[Time, "When it was created"]
    ended_at: Annotated[Time | None, "When it ended; null before that"]
    reset: Annotated[bool, "Whether everything else in the corpus is removed"]
    removes: Annotated[Sequence[str], "Titles of documents to remove"]
    embedded: Annotated[Count, "Passages that have vectors so far"]
    to_embed: Annotated[Count, "Passages that need vectors"]
    files: Annotated[Sequence[JobFile], "Its files"]
    url: Annotated[str, "The path of the job"]
    error: NotRequired[Annotated[str, "Why it failed"]]


class CorpusDocument(TypedDict):
    """A document of a corpus."""

    document_id: Annotated[str, "The id for removing it"]
    title: Annotated[str, "Its key in the corpus"]
    name: Annotated[str, "The file that it came from"]
    counts: Annotated[Mapping[str, Count], "What it has, such as lessons or nodes: number of each"]
    updated_at: Annotated[Time, "When it was last changed"]


class GraphProperty(TypedDict):
    """A property of nodes or relationships."""

    name: Annotated[str, "Its name"]
    type: Annotated[Literal["STRING", "INT64", "DOUBLE", "BOOL"], "The type of its values"]


class GraphLabel(TypedDict):
    """A label, with the number of its nodes."""

    name: Annotated[str, "Its name"]
    properties: Annotated[Sequence[GraphProperty], "The nodes' properties"]
    count: Annotated[Count, "Number of nodes"]


class GraphType(TypedDict):
    """A relationship type, with the number of its relationships."""

    name: Annotated[str, "Its name"]
    ends: Annotated[Sequence[Sequence[str]], "Pairs of labels: from, to"]
    properties: Annotated[Sequence[GraphProperty], "The relationships' properties"]
    count: Annotated[Count, "Number of relationships"]


class GraphSchema(TypedDict):
    """The schema of a graph."""

    labels: Annotated[Sequence[GraphLabel], "The labels of its nodes"]
    types: Annotated[Sequence[GraphType], "The types of its relationships"]


class Corpus(TypedDict):
    """The published version of a corpus."""

    corpus: Annotated[str, "The corpus"]
    version: Annotated[str | None, "The published version; null before the first"]
    model: Annotated[str, "The embedding model of its vectors; empty if keywords alone rank"]
    counts: Annotated[Mapping[str, Count], "What it has, such as lessons or nodes: number of each"]
    updated_at: Annotated[Time | None, "When it was published"]
    documents: Annotated[Sequence[CorpusDocument], "Its documents"]
    schema: NotRequired[Annotated[GraphSchema | None, "Only for the graph; null before the first load"]]


KEYWORDS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "Refusal": {"additionalProperties": True},
        "Record": {"oneOf": [{"required": ["content"]}, {"required": ["result"]}]},
    }
)
"""What JSON Schema says of an object besides its fields, by the type's name."""
