"""A chat's whole life in one process: API calls, the workflow with its retries, the EventBridge rule, the sweep.

Every step is delivered to a `Process` of its own, so that one call of one delivery can go wrong
(tests/drivers/faults.py). The driver plays the AWS services and the client: Step Functions retries a state and then
aborts, EventBridge calls `abort` for failed executions, the sweep runs on its schedule, a client repeats its request.
What must be true afterwards is in tests/drivers/invariants.py.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol

import anthropic
import httpx2
from dualtrack.api.conversations import rename_conversation
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.attached_files import File
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.cost_hold import CostSettings
from dualtrack.chat.decide_calls import CallDecision, decide_calls
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.end_chat import end_chat, failure_of
from dualtrack.chat.erase_user import Retention, begin_erasure, stop_user
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.new_chat import BroughtPast, NewChat, Repeat, fingerprint
from dualtrack.chat.run_tool import run_tool
from dualtrack.chat.run_turn import run_turn
from dualtrack.chat.start_chat import first_chat, start_chat
from dualtrack.chat.summarise import summarise
from dualtrack.chat.sweep import sweep
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.chat.turn_attempt import TurnSettings, WaitTiming
from dualtrack.chat.uploaded_files import (
    UPLOAD_SECONDS,
    Reference,
    discard,
    fetched,
    reopen,
    usable,
    use,
)
from dualtrack.chat_times import CHAT_SECONDS, ChatTimes
from dualtrack.clock import iso
from dualtrack.credits.keys import Caps
from dualtrack.errors import ApiError
from dualtrack.events import delta, turn_begins
from dualtrack.frozen import freeze
from dualtrack.ids import (
    execution_name,
    new_conversation_id,
    new_message_upload_id,
    parse_record_id,
    query_id,
    response_id,
)
from dualtrack.memory.digests import Digest
from dualtrack.memory.left_out import declined_track
from dualtrack.memory.passages import SEARCH_TOOL
from dualtrack.memory.recall import RETRIEVE_FULL_CONTEXT
from dualtrack.memory.records import QueryTrack, Record, TrackBlock
from dualtrack.memory.standing import Instruction, Standing
from dualtrack.memory.summaries import SummarySettings
from dualtrack.models.messages_api import Claude
from dualtrack.models.metering import asking
from dualtrack.models.receipt_data import Heard
from dualtrack.models.turn import Usage
from dualtrack.profiles import DEFAULT_PROFILE, ApprovalPolicy, all_profiles
from dualtrack.requests import ChatRef
from dualtrack.runtime.executions import Executions
from dualtrack.storage.chats import Chat, chat_of, turn_key
from dualtrack.storage.conversations import Conversation, list_position
from dualtrack.storage.dynamo import from_wire
from dualtrack.storage.history import record_key
from dualtrack.storage.stores import Stores, build_stores
from dualtrack.storage.uploads import Upload, object_key
from dualtrack.tool_values import Source, ToolResult, ToolSpec
from dualtrack.tools.mcp import catalogue
from dualtrack.tools.registry import in_house_tools
from dualtrack.tools.running import ToolNeeds
from dualtrack_stack.local.offline_model import notes, rules, sse, tokens, wire
from dualtrack_stack.local.offline_model.refusal import RefusalError, error_body
from dualtrack_stack.local.offline_model.remembered import Remembered
from dualtrack_stack.local.offline_model.reply import Reply, fresh_id
from dualtrack_stack.local.offline_model.summary import is_summary_request

from tests.drivers.courses import BOATS, TABLES, index_of, publish
from tests.drivers.faults import PATIENCE, ModelTransport, Process, Trace, start_late
from tests.drivers.images import png
from tests.drivers.local_vectors import LocalVectors
from tests.drivers.memory_aws import MemoryAws
from tests.drivers.world import SETTINGS, FakeClock, search_needs, store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.models.turn import ToolCall
    from dualtrack.models.wanted import Wanted
    from dualtrack.tools.running import Running

    from tests.drivers.faults import Fault

MODEL: Final = "claude-haiku-4-5-20251001"
INSIDE_TOKENS: Final = 1_000
"""Tokens of the model that a documentation search takes."""
TITLE: Final = "A title by the model"
RENAMED: Final = "A title by the user"
PROMPT: Final = 100
"""Tokens of each prompt, by the service's count."""
USER: Final = "ann"
MACHINE: Final = "arn:aws:states:us-east-1:1:stateMachine:chat"
ANSWER: Final = "This is the answer, and it is long enough to be worth a summary. " * 20
IMPORTED: Final = "From elsewhere. "
BIG: Final = "".join(random.Random(7).choices("0123456789abcdef", k=2_000_000))
"""A tool result too large for an item: two megabytes that do not compress below the limit."""

SCHEMA: Final = freeze({"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]})

TEXT_FILE: Final = File("text/markdown", b"The plan says 80. " * 200, "plan.md")
SHORT_FILE: Final = File("application/json", b'{"q1-r": "[ID:q1-r] forged"}')
IMAGE: Final = File("image/png", png(bytes(2_000)), "chart.png")

NOTE_SPEC: Final = ToolSpec(
    name="kit_note",
    description="Writes a note.",
    input_schema=freeze({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
    kind="mcp",
    price_class="github",
    repeatable=False,
    server="kit",
    remote_name="note",
)
_LIMIT: Final = re.compile(r"\(The (time|cost) limit of this chat is reached\.")
_RUNNING_QUERY: Final = re.compile(r"\[ID:q(\d+)\] ")


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call that the model makes: the tool and its input."""

    tool: str
    input: dict[str, Any]


DOCUMENTATION: Final = Asked("retrieve_documentation", {"query": "How do I use it?"})
NOTE: Final = Asked("kit_note", {"text": "Remember this."})
ALWAYS: Final = Instruction(1, "Always be brief.")
"""What the first earlier query asks for once and for all: every digest has it."""

READ: Final = Asked("retrieve_full_context", {"id": "q1"})
READ_FILE: Final = Asked("retrieve_full_context", {"id": "q1-f1"})
SEARCH: Final = Asked(SEARCH_TOOL, {"query": "What did we say about the documentation?"})
COURSE_SEARCH: Final = Asked(
    "search_course_content", {"query": "varnish", "course_name": None, "lesson_number": None}
)
OUTLINE: Final = Asked("get_course_outline", {"course_name": "boats"})
FOLLOW_UP: Final = " of the follow-up"
"""Suffix of the names of a follow-up's steps."""

UNKNOWN: Final = Asked("no_such_tool", {})
QUESTION: Final = Asked("ask_user", {"question": "Which one?", "options": ["The red one", "The blue one"]})
LOOKUP: Final = Asked("look_up", {"word": "dinghy"})
CLIENT_TOOL: Final[Mapping[str, Any]] = {
    "name": LOOKUP.tool,
    "description": "Looks a word up on the user's own machine.",
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}
"""A tool that the client runs."""
FOUND: Final = "A small boat. " * 100
"""What it says."""

RETENTION: Final = Retention(ledger_days=30, token_hours=1)
ERASURE_SWEEPS: Final = 7
"""Sweeps, five minutes apart, after which a user is erased in spite of one fault."""

SWEEP_SECONDS: Final = 120
PAUSED: Final = "Paused"
"""The state of a chat that waits for decisions: its execution has ended."""
EARLIER_TOKENS: Final = 1_000
"""Tokens that an earlier query takes of the history budget, rounded up."""


RUNS: Final = 3
"""Runs of a periodic function: one may fail, and what it has claimed may be done by the next."""

API_KEY: Final = "key_1"
CAPS: Final = Caps().changed({"credits_day": 60, "credits_total": 100, "dollars_day": 1, "dollars_total": 5})
"""Of its key, above what a scenario takes."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A chat: the tools that the model asks for, turn by turn, and how it ends if nothing goes wrong."""

    name: str
    rounds: tuple[tuple[Asked, ...], ...] = ()
    status: str = "done"
    stop: str = "complete"
    charged: int = 5
    keyed: bool = False
    """With an Idempotency-Key."""

    by_api_key: bool = False
    """Of `API_KEY`, with `CAPS`."""

    result: str = "What the documentation says. " * 20
    files: tuple[File, ...] = ()
    """Attachments of every query."""

    by_upload: bool = False
    """The files were put before the first query, which names them."""

    used_before: int = 0
    stopped_after: str = ""
    stopped_by: str = "cancel"
    """What happens from outside after this step: "cancel", "abort" or "deadline"."""

    late_after: str = ""
    """This step ends in minute 11, past the deadline."""

    written: str = ""
    """Text that the next turn has streamed when the chat is stopped; its worker dies before recording it."""

    thinks: bool = False
    """Whether the model thinks before its answer."""

    refused_by_model: bool = False
    refused_tool: str = ""
    """A tool for which the model's service refuses every request that has it."""

    busy: int = 0
    """Attempts of each turn of the first query that the model answers with 529."""

    declines: str = ""
    """What the model's service declines wherever it stands; the first query says it too, if no other text here does."""

    stops_with: str = "end_turn"
    """Why the model stops behind each answer."""

    cuts: bool = False
    """Whether the limit of tokens comes within the last call of every turn."""

    goes_on: bool = False
    """Whether the follow-up continues the answer."""

    max_cost: float = 0.0
    """The deployment's cap in dollars a chat."""

    caches: bool = False
    """Whether the model's service caches prompts."""

    counts: bool = False
    """Whether it counts each prompt as it is, in place of `PROMPT`."""

    window: int | None = None
    """The model's context window in tokens, during the first query."""

    vanishes_after: str = ""
    """The execution disappears after this step, without a notification."""

    never_started: bool = False
    follow_up: Literal["", "before", "during", "while it waits", "after"] = ""
    """When a second query comes: before the summaries, during the first call for one, before them but so that they
    come while it waits for them, or after them."""

    declined_before: bool = False
    """Of those before it, the last but one has the words in its answer, and for that the last was declined."""

    earlier: int = 0
    """Queries of an earlier release before it, `EARLIER_TOKENS` each."""

    digest_waits: bool = False
    """Two thirds of them have been folded into a digest that is still pending."""

    forked: bool = False
    """The query runs in a fork that shares all of them; the parent is deleted."""

    profile: str = ""
    """The conversation's profile; empty: the default."""

    output: Literal["", "fits late", "never fits"] = ""
    """Every query brings `SCHEMA`; its first answer does not fit, and the second does or does not."""

    always_asks: bool = False
    """Later queries of the conversation ask for the same tools."""

    asks: tuple[str, ...] = ()
    """The tools that need approval."""

    tools: tuple[Mapping[str, Any], ...] = ()
    """Those that the client of every query runs."""

    wanted: Wanted | None = None
    """What the client of every query asks of the answer."""

    heard_by: Callable[[World], Listener] | None = None
    """Who is told of every end and pause."""

    begun_by: Callable[[World], Beginning] | None = None
    """What asks the first query in place of a client."""

    imports: int = 0
    """Queries that the first request brings from elsewhere; behind what `earlier` leaves, into a fork of it."""

    titled: Literal["", "by the model", "by the user meanwhile"] = ""
    """The deployment has the model give titles; the user may rename the conversation while it does."""

    decided: Literal["approve", "decline", "edit", "allow", "one by one", "cancel", "nobody"] = "approve"
    """What becomes of each pause; "allow": its tools run from then on; "nobody" decides until it ends."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request that reached the model: ``recorded`` if that turn was on record already."""

    query: int
    turn: int
    recorded: bool
    late: bool
    messages: str = ""
    """The messages, without the last call's extra instruction; empty if refused."""


@dataclass
class Pool:
    """The user pool's members, behind the edge of a process."""

    users: set[str]
    process: Process

    def delete(self, user: str) -> bool:
        """Take the user out."""

        def perform() -> bool:
            there = user in self.users
            self.users.discard(user)
            return there

        done: bool = self.process.call("cognito", "admin_delete_user", "", perform)
        return done


class Beginning(Protocol):
    """Something of a plug-in that begins a chat in this world."""

    def play(self) -> None:
        """Begin it; what can fail is a `World.state` with the name ``STEP`` of the plug-in's ``crash_scenarios.py``."""

    def faults(self, chats: Sequence[Chat]) -> Iterator[str]:
        """What is wrong in the end."""


class Listener(Protocol):
    """Something of a plug-in that is told what this world notes."""

    def listen(self) -> None:
        """Let it be noted, before the first query."""

    def hear(self) -> None:
        """Take what is noted; what can fail is a `World.state` named in the ``STEPS`` of its ``crash_scenarios.py``."""

    def faults(self, chats: Sequence[Chat], said: Sequence[str]) -> Iterator[str]:
        """What is wrong in the end; ``said``: texts that nobody is told."""


class StepFailed(Exception):
    """A state failed after its retries."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(repr(cause))
        self.error = str(getattr(cause, "error", type(cause).__name__))


@dataclass
class World:
    """One run of one scenario with at most one fault."""

    beside: ClassVar[tuple[str, ...]] = ("retry", "retry to the end", "cancel", "abort", "deadline", "erase")
    """What happens while a process is held at a call, before it is released."""

    scenario: Scenario
    fault: Fault | None = None
    meanwhile: str = ""
    """While a process is held: "retry", "retry to the end", "cancel", "abort", "deadline", "erase"; for what comes
    from outside also "a step" or "the rest" of the chat."""

    aws: MemoryAws = field(default_factory=MemoryAws)
    clock: FakeClock = field(default_factory=FakeClock)
    user: str = USER
    model_calls: list[ModelCall] = field(default_factory=list)
    tool_runs: list[tuple[str, bool]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)
    starts: dict[int, list[str]] = field(default_factory=dict)
    remembered: Remembered = field(default_factory=Remembered)
    """What the calls for each query sent up to and including the query, block by block."""

    tracks: dict[tuple[str, str], Any] = field(default_factory=dict)
    """Every summarised track as first written."""

    def __post_init__(self) -> None:
        self.trace = Trace(self.aws, self.fault)
        self.recorded = self.trace
        self.quiet = Trace(self.aws)
        self.zombies: list[tuple[Process, threading.Thread]] = []
        self.lock = threading.Lock()
        self.pool = {self.user}
        self.tries: Counter[tuple[int, int]] = Counter()
        self.erased = False
        self._suffix = ""
        self._followed = False
        self._first: ChatRef | None = None
        self.uploads: list[Reference] = []
        self.beginning = self.scenario.begun_by(self) if self.scenario.begun_by else None
        self.listener = self.scenario.heard_by(self) if self.scenario.heard_by else None
        self.renamed = False
        """Whether the user has renamed the conversation."""
        self._prepare()

    def _prepare(self) -> None:
        stores = self.look()
        cache, now = stores.cache, self.clock()
        catalogue.store_listing(cache, "kit", catalogue.ServerTools((NOTE_SPEC,)), now)
        if self.scenario.profile == "courses":
            publish(stores, "v1", index_of([BOATS, TABLES]))
        self._use_before(stores)
        if self.listener:
            self.listener.listen()
        if self.scenario.by_upload:
            self._put(stores)
        self.conversation_id = self._said_before(stores) if self.scenario.earlier else ""

    def _put(self, stores: Stores) -> None:
        """The files as uploads that no message has named yet."""
        for place, file in enumerate(self.scenario.files):
            expires = int(self.clock()) + UPLOAD_SECONDS
            size = len(file.data)
            upload = Upload(new_message_upload_id(), file.media_type, size, file.name, "", expires)
            stores.uploads.announce(self.user, upload)
            key = object_key(self.user, upload.upload_id)
            stores.uploads.s3.put_object(Bucket=stores.uploads.bucket, Key=key, Body=file.data)
            self.uploads.append(Reference(place, upload.upload_id))

    def _said_before(self, stores: Stores) -> str:
        """A conversation with its summarised tracks; no chat reads anything else of it."""
        count, now = self.scenario.earlier, iso(self.clock())
        conversation_id = new_conversation_id()
        position = list_position(now, conversation_id)
        profile = self.scenario.profile or DEFAULT_PROFILE
        conversation = Conversation(self.user, conversation_id, "", profile, now, now, position, count)
        stores.conversations.create(conversation)
        key: Any = {"pk": {"S": f"USER#{self.user}"}, "sk": {"S": f"CONV#{conversation_id}"}}
        stores.chats.client.update_item(
            TableName=SETTINGS.history_table, Key=key, UpdateExpression="SET queries = :n",
            ExpressionAttributeValues={":n": {"N": str(count)}},
        )  # fmt: skip
        for number in range(1, count + 1):
            own = query_id(number)
            said = f"{ALWAYS.words}\n" if number == ALWAYS.query else ""
            asked = TrackBlock(own, "user", said + "word " * (4 * EARLIER_TOKENS // 6), now)
            said = f"Yes: {self.scenario.declines}." if number == count - 1 else "Yes."
            track = QueryTrack(
                number, (asked, TrackBlock(f"{own}-r-sum", "assistant", said, now, f"{own}-r"))
            )
            if self.scenario.declined_before and number == count:
                track = declined_track(track)
                answer = Record(f"{own}-r", "message", "assistant", "No.", now, 1, stop="refusal")
                store(stores, stores.history.record_writes(self.user, conversation_id, answer))
            store(stores, stores.history.track_writes(self.user, conversation_id, track))
        if self.scenario.digest_waits:
            through = 2 * count // 3
            standing = Standing((ALWAYS,))
            waiting = Digest(1, through, "What was said first.", now, standing)
            store(stores, [stores.digests.put_action(self.user, conversation_id, waiting)])
        if not self.scenario.forked:
            return conversation_id
        fork = fork_conversation(stores, self.user, conversation_id, count + 1)
        delete_conversation(stores, self.user, conversation_id)
        return fork.conversation_id

    def _use_before(self, stores: Stores) -> None:
        if self.scenario.by_api_key:
            stores.ledger.add_key(self.user, API_KEY, CAPS, self.clock())
        if self.scenario.used_before:
            now = self.clock()
            account = stores.ledger.load(self.user)
            held: Any = account.hold("ch_before", self.scenario.used_before, now)
            stores.ledger.commit(account, held)
            stores.ledger.commit(
                held.account, held.account.settle("ch_before", self.scenario.used_before, now)
            )

    # ── what a process works with ─────────────────────────────────────────────────────────────────

    def process(self, step: str) -> Process:
        """A worker for one delivery of a step."""
        return Process(self.trace, step)

    def look(self) -> Stores:
        """The stores for checks, which meet no faults."""
        return self.stores(Process(self.quiet, "look"))

    def stores(self, process: Process) -> Stores:
        """The stores over a process's clients; a new process remembers no catalogue."""
        catalogue._DECODED.clear()
        return build_stores(SETTINGS, process.dynamodb, process.s3, self.clock)

    @staticmethod
    def executions(process: Process) -> Executions:
        """The workflow's executions over a process's client."""
        return Executions(process.step_functions, MACHINE)

    def claude(self, process: Process) -> Claude:
        """The real client over a process's edge."""
        http = httpx2.Client(
            transport=ModelTransport(process, lambda raw: self._reply(process, raw)), base_url="http://model"
        )
        client = anthropic.Anthropic(base_url="http://model", api_key="test", max_retries=0, http_client=http)
        return Claude(client, asks_about_cache=True)

    # ── the model ─────────────────────────────────────────────────────────────────────────────────

    def _reply(self, process: Process, raw: bytes) -> tuple[str, Callable[[], httpx2.Response]]:
        request = wire.Request.model_validate(json.loads(raw))
        self.note_tracks()
        if is_summary_request(request):
            text = str(getattr(request.messages[-1].content[0], "text", ""))
            if any("as its title" in block.text for block in request.system):
                return "title", self._name
            about = text.split("\n", 1)[0]
            return f"summary {about}", lambda: self._sum_up(about)
        query, turn = _position_of(request)
        if self.scenario.declines and self.scenario.declines.encode() in raw:
            return f"turn {turn}", lambda: self._decline(process, request, query, turn)
        self._note_start(query, json.loads(raw))
        return f"turn {turn}", lambda: self._say(process, request, query, turn)

    def _name(self) -> httpx2.Response:
        """The title; the user may rename the conversation while it is written."""
        stores, chat = self.look(), self.chats()[0]
        if chat.titling:
            self.complaints.append("the title was on record, and the model was asked for it again")
        if self.scenario.titled == "by the user meanwhile":
            with contextlib.suppress(ApiError):
                rename_conversation(stores, self.user, chat.conversation_id, RENAMED)
                self.renamed = True
        return _json_response(Reply(({"type": "text", "text": TITLE},)))

    def _sum_up(self, about: str) -> httpx2.Response:
        if self.scenario.follow_up == "during":
            self._follow_up()
        return _json_response(Reply(({"type": "text", "text": f"About {about}"},)))

    def _note_start(self, query: int, body: dict[str, Any]) -> None:
        """Check that every call for a query sends the same past."""
        said = [
            f"{message['role']} {block.get('text', '')}"
            for message in body["messages"]
            for block in message["content"]
        ]
        own = next(
            (index for index, text in enumerate(said) if text.startswith(f"user [ID:q{query}] ")), None
        )
        start = said if own is None else said[: own + 1]
        if self.starts.setdefault(query, start) != start:
            self.complaints.append(f"two calls for q{query} sent another past: {self.starts[query]}, {start}")

    def note_tracks(self) -> None:
        """Check that a track never changes once it is written."""
        with self.aws.lock:
            tracks = {
                key: item
                for key, item in self.aws.table(SETTINGS.history_table).items()
                if key[1].startswith("S#")
            }
        for key, item in tracks.items():
            if self.tracks.setdefault(key, item) != item:
                self.complaints.append(f"the track {key} was written a second time")

    def _decline(self, process: Process, request: wire.Request, query: int, turn: int) -> httpx2.Response:
        if self.scenario.name == "next":
            self.complaints.append("the next query was sent the words of a declined one")
        recorded = any(self.has_turn(chat, turn) for chat in self.chats() if chat.query == query)
        with self.lock:
            self.model_calls.append(ModelCall(query, turn, recorded, process.held.is_set()))
        details = {"type": "refusal", "category": "general_harms", "explanation": "scripted"}
        return self._stream(request, Reply(({"type": "text", "text": "I"},), "refusal", stop_details=details))

    def _say(self, process: Process, request: wire.Request, query: int, turn: int) -> httpx2.Response:
        recorded = any(self.has_turn(chat, turn) for chat in self.chats() if chat.query == query)
        with self.lock:
            self.model_calls.append(ModelCall(query, turn, recorded, process.held.is_set()))
            number = len(self.model_calls)
        if self.scenario.window and query == 1 and tokens.count(request) > self.scenario.window:
            words = f"prompt is too long: {tokens.count(request)} tokens > {self.scenario.window} maximum"
            return httpx2.Response(400, json=error_body(400, words, "req_1"))
        with self.lock:
            call = self.model_calls[number - 1]
            self.model_calls[number - 1] = replace(call, messages=_messages(request))
        try:
            rules.check(request, lambda _: False)
        except RefusalError as refusal:
            self.complaints.append(f"the model refused: {refusal.message}")
            return httpx2.Response(refusal.status, json=error_body(refusal.status, refusal.message, "req_1"))
        self.tries[query, turn] += 1
        if query == 1 and self.tries[query, turn] <= self.scenario.busy:
            return httpx2.Response(529, json=error_body(529, "scripted", "req_1"))
        if words := self._refusal(query, request):
            return httpx2.Response(400, json=error_body(400, words, "req_1"))
        rounds = self.scenario.rounds if query == 1 or self.scenario.always_asks else ()
        last = request.tool_choice is not None and request.tool_choice.type == "none"
        if turn > len(rounds) or last or not rounds[turn - 1]:
            is_forced = request.output_config is not None and request.output_config.format is not None
            fits = self.scenario.output == "fits late" and is_forced
            text = json.dumps({"said": ANSWER}) if fits else f"({number}) {ANSWER}"
            thought = (
                ({"type": "thinking", "thinking": "Hm.", "signature": "s"},) if self.scenario.thinks else ()
            )
            said = (*thought, {"type": "text", "text": text + notes.behind(request, text)})
            return self._stream(request, Reply(said, self.scenario.stops_with))
        calls = [{"type": "text", "text": f"({number}) Let me look."}, *map(_tool_use, rounds[turn - 1])]
        if self.scenario.cuts:
            calls[-1] |= {"input": {}, "input_json": '{"text": "Remem'}
        stop = "max_tokens" if self.scenario.cuts else "tool_use"
        return self._stream(request, Reply(tuple(calls), stop))

    def _stream(self, request: wire.Request, reply: Reply) -> httpx2.Response:
        prompt = tokens.count(request) if self.scenario.counts else PROMPT
        usage = tokens.Usage(0, cache_written=prompt) if self.scenario.caches else tokens.Usage(prompt)
        message_id = fresh_id("msg")
        said = self.remembered.compared(request, message_id)
        events = sse.events(reply, message_id, MODEL, usage, 10_000, said)
        return httpx2.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=b"".join(event.encode() for event in events),
        )

    def _refusal(self, query: int, request: wire.Request) -> str:
        """Why the scenario's service refuses the request; empty if it does not."""
        names = [tool.name for tool in request.tools]
        if self.scenario.refused_tool in names:
            return f"tools.{names.index(self.scenario.refused_tool)}.custom.input_schema: scripted"
        return "scripted" if self.scenario.refused_by_model and query == 1 else ""

    # ── tools ─────────────────────────────────────────────────────────────────────────────────────

    def _execute(self, process: Process, stores: Stores, running: Running) -> ToolResult:
        def perform() -> ToolResult:
            self._note_run(process, running)
            if running.call.tool == DOCUMENTATION.tool:
                with asking("model", MODEL) as question:
                    question.usage = Usage(INSIDE_TOKENS)
            return ToolResult(self.scenario.result, sources=(Source("The manual", "https://docs.test/"),))

        if running.call.tool == RETRIEVE_FULL_CONTEXT:
            return in_house_tools("tool", lambda: ToolNeeds(stores))(running)
        if running.call.tool in (COURSE_SEARCH.tool, OUTLINE.tool, SEARCH_TOOL):
            if running.call.tool != SEARCH_TOOL:
                self._note_run(process, running)
            return in_house_tools("search", lambda: search_needs(stores, local=LocalVectors()))(running)
        result: ToolResult = process.call("tool", "execute", running.call.tool, perform)
        return result

    def _note_run(self, process: Process, running: Running) -> None:
        record_id = parse_record_id(running.call.id)
        assert record_id is not None
        key = (f"CONV#{running.user}#{running.conversation_id}", record_key(record_id))
        recorded = key in self.aws.table(SETTINGS.history_table)
        turn = self.look().chats.turn(running.chat, running.chat.turn)
        call = next((call for call in turn.calls if call.id == running.call.id), None) if turn else None
        if turn and call and not (call in turn.runnable and call.input == running.call.input):
            self.complaints.append(f"{call.id} ran without leave, or with another input: {call.verdict}")
        with self.lock:
            self.tool_runs.append((running.call.id, recorded and not process.held.is_set()))

    # ── deliveries ────────────────────────────────────────────────────────────────────────────────

    def deliver(self, step: str, body: Callable[[Process], Any]) -> Any:
        """Deliver a step once; if the fault says so, twice, or beside a run that is held."""
        fault = self.fault
        if fault is None or fault.site.step != step or self.trace.struck:
            outcome = body(self.process(step))
            if self.meanwhile == "a step":
                self.release()
            return outcome
        if fault.kind == "delivered twice":
            self.trace.struck = True
            body(self.process(step))
            return body(self.process(step))
        if fault.kind == "held":
            return self._deliver_held(step, body)
        return body(self.process(step))

    def _deliver_held(self, step: str, body: Callable[[Process], Any]) -> Any:
        process = self.process(step)
        thread, outcome = start_late(f"held {step}", partial(body, process))
        while thread.is_alive() and not process.held.wait(0.001):
            pass
        if process.held.is_set():
            self.zombies.append((process, thread))
            if self.meanwhile.startswith("retry"):
                result = body(self.process(step))
                if self.meanwhile == "retry":
                    self.release()
                return result
            if self.meanwhile in ("a step", "the rest"):
                return None
            self._interfere(self.meanwhile)
            self.release()
        thread.join(PATIENCE)
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    def _interfere(self, how: str) -> None:
        if how == "erase":
            self.erase()
            return
        for chat in self.chats():
            if how == "cancel":
                self.cancel(ref_of(chat))
            elif how == "abort":
                self.abort(ref_of(chat), "meanwhile")
            elif how == "deadline":
                self.clock.now += self.chat_seconds + 1
                self.sweep("meanwhile")

    @property
    def chat_seconds(self) -> int:
        """How long its chats may take: with more tokens a call, longer than most."""
        return max((chat.times.chat for chat in self.chats()), default=CHAT_SECONDS)

    def release(self) -> None:
        """Let the held process go on, to its end."""
        for process, thread in self.zombies:
            process.released.set()
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"{thread.name} hangs"
        self.zombies.clear()

    def state(self, step: str, body: Callable[[Process], Any], retries: int) -> Any:
        """A state of the workflow: retried, then caught."""
        step = f"{step}{self._suffix}"
        for attempt in range(retries + 1):
            try:
                return self.deliver(step, body)
            except Exception as error:
                if attempt == retries:
                    raise StepFailed(error) from error
                self.clock.now += 2
        raise AssertionError(step)

    # ── the machinery ─────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """The chat's whole life, then everything that runs on a schedule."""
        if self.beginning:
            self.beginning.play()
        else:
            self.post(conversation_id=self.conversation_id)
        self.machines()
        self.look_after()
        if self.listener:
            self.listener.hear()
        self.release()
        if self.erased:
            self.end_erasure()

    def machines(self) -> None:
        """The executions of all chats that run."""
        for chat in self.chats():
            if self.execution(chat.chat_id) == "RUNNING":
                self.machine(ref_of(chat))

    def post(self, message: str = "What is it?", conversation_id: str = "") -> None:
        """POST /v1/chats; with a key, repeated until it is answered."""
        body = f"{message} ({self.scenario.name})"
        if not conversation_id and self.scenario.declines not in self.scenario.result:
            body += f" How do I make {self.scenario.declines}?"
        for _ in range(4 if self.scenario.keyed else 1):
            try:
                status = self.deliver(f"start{self._suffix}", partial(self.start, body, conversation_id))
            except Exception:  # noqa: BLE001 - a 500 for the client
                status = 500
            self.responses.append(status)
            if status == 202:
                return

    def machine(self, ref: ChatRef) -> None:
        """The execution of a chat."""
        number = self._number(ref.chat_id)
        try:
            ended = "" if ref.turn == 0 and self._is_over(ref, "admitted") else self._states(ref)
        except StepFailed as failed:
            ended = "FAILED"
            with contextlib.suppress(StepFailed):
                self.abort(ref, failed.error)
        if ended and self.execution(ref.chat_id, number) == "RUNNING":
            self.end_execution(ref.chat_id, ended, number)
        if self.execution(ref.chat_id, number) in ("FAILED", "ABORTED"):
            self._rule(ref, number)
        if ended == "SUCCEEDED" and self._is_paused(ref):
            self._decide(ref)

    def _decide(self, ref: ChatRef) -> None:
        """What becomes of a pause; the execution that goes on after it."""
        how = self.scenario.decided
        if how == "nobody":
            self._pass_pauses()
            with contextlib.suppress(StepFailed):
                self.sweep("at the end of the pause")
        elif how == "cancel":
            self.cancel(ref)
        for number in (
            (0, 1)
            if how == "one by one"
            else (None,)
            if how in ("approve", "decline", "edit", "allow")
            else ()
        ):
            with contextlib.suppress(StepFailed):
                self.state("decide", partial(self.decide, ref, number), 3)
        self._go_on_after_pause(ref)

    def _pass_pauses(self) -> None:
        """Until the end of every pause; long before it, somebody hears that there is one."""
        if self.listener:
            self.listener.hear()
        ends = [chat.deadline for chat in self.chats() if chat.status == "paused"]
        self.clock.now = max([self.clock.now, *ends]) + 1

    def _go_on_after_pause(self, ref: ChatRef) -> None:
        chat = self._chat(ref)
        if chat and chat.pause and chat.status == "running" and self.execution(ref.chat_id) == "RUNNING":
            self.machine(replace(ref, turn=chat.entry))

    def _chat(self, ref: ChatRef) -> Chat | None:
        return next((chat for chat in self.chats() if chat.chat_id == ref.chat_id), None)

    def _is_paused(self, ref: ChatRef) -> bool:
        chat = self._chat(ref)
        return chat is not None and chat.status == "paused"

    def _states(self, ref: ChatRef) -> str:
        recorded = ref.turn
        while True:
            step = f"turn {recorded + 1}"
            outcome = self._heard(replace(ref, turn=recorded), step)
            if outcome is None:
                return ""
            recorded = outcome["turn"]
            if outcome["next"] not in ("tools", "turn"):
                break
            for call in outcome["calls"]:
                self._tool(replace(ref, turn=recorded), call["id"], call["fn"])
                if self._is_over(ref, f"tool {call['id']}"):
                    return ""
        if outcome["next"] != "answered":
            return "SUCCEEDED" if outcome["next"] == "paused" else "FAILED"
        return self._behind_answer(ref)

    def _behind_answer(self, ref: ChatRef) -> str:
        if self._is_over(ref, "answer"):
            return ""
        if self.scenario.follow_up in ("before", "while it waits"):
            self._first = self._first or ref
            self._follow_up()
        self.state("summarise", partial(self.summarise, ref), 3)
        if self.scenario.follow_up == "after":
            self._follow_up()
        return "SUCCEEDED"

    def _heard(self, ref: ChatRef, step: str) -> dict[str, Any] | None:
        """The outcome of a turn once the model is no longer busy; None if the chat is over."""
        while True:
            outcome: dict[str, Any] = self.state(step, partial(self.turn, ref), 3)
            if self._is_over(ref, step):
                return None
            if outcome["next"] != "wait":
                return outcome
            self.clock.now += outcome["seconds"]

    def _follow_up(self) -> None:
        """A second query, once, from its POST to its end."""
        if self._followed:
            return
        self._followed = True
        known = self.chats()
        with self._steps_named(FOLLOW_UP):
            self.post("And the host?", known[-1].conversation_id)
            for chat in self.chats():
                if chat.query > 1 and self.execution(chat.chat_id) == "RUNNING":
                    self.machine(ref_of(chat))

    @contextlib.contextmanager
    def _steps_named(self, suffix: str) -> Iterator[None]:
        before, self._suffix = self._suffix, suffix
        try:
            yield
        finally:
            self._suffix = before

    def _sleep(self, seconds: float) -> None:
        """A turn waits; the summaries may be written meanwhile."""
        self.clock.sleep(seconds)
        first, self._first = self._first, None
        if self.scenario.follow_up == "while it waits" and first:
            with self._steps_named(""), contextlib.suppress(StepFailed):
                self.state("summarise", partial(self.summarise, first), 3)

    def go_on(self, ref: ChatRef, state: str, turn: int, calls: tuple[str, ...]) -> None:
        """Continue an execution from the state it is about to enter."""
        for call_id in calls:
            self._tool(replace(ref, turn=turn), call_id)
        if state == PAUSED:
            self._decide(ref)
            return
        if state == "Summarise":
            self.state("summarise", partial(self.summarise, ref), 3)
            return
        self.machine(replace(ref, turn=turn))

    def _tool(self, ref: ChatRef, call_id: str, fn: str = "tool") -> None:
        with contextlib.suppress(StepFailed):
            self.state(f"tool {call_id}", partial(self.tool, ref, call_id, fn=fn), 1)

    def _is_over(self, ref: ChatRef, step: str) -> bool:
        """Whether the chat is over after a step: it took too long, was stopped, or its execution disappeared."""
        if self.scenario.late_after == step:
            self.clock.now += CHAT_SECONDS - ChatTimes().last_call
        if self.scenario.stopped_after == step:
            if self.scenario.written:
                self.begin_turn(ref)
            self._interfere(self.scenario.stopped_by)
        return self.scenario.vanishes_after == step or self.execution(ref.chat_id) != "RUNNING"

    def begin_turn(self, ref: ChatRef, tries: int = 1) -> None:
        """A worker streams what is ``written`` by this try of the next turn, and dies."""
        (chat,) = [chat for chat in self.chats() if chat.chat_id == ref.chat_id]
        if chat.status != "running":
            return
        stores, turn = self.look(), chat.turn + 1
        heard = Heard(turn, tries, MODEL, usage=Usage(PROMPT)).behind(chat.heard)
        stores.chats.hear(chat, heard)
        events = [turn_begins(turn, 15, final=False), delta(turn, self.scenario.written)]
        stores.log(ref).append(events)

    def abort(self, ref: ChatRef, error: str) -> None:
        """The Abort state."""
        step = "abort" if error != "meanwhile" else "abort meanwhile"
        self.state(step, partial(self.end, ref, error, self._number(ref.chat_id)), 3)

    def _rule(self, ref: ChatRef, number: int) -> None:
        """EventBridge calls `abort` for an execution that did not succeed."""
        status = self.execution(ref.chat_id, number)
        with contextlib.suppress(StepFailed):
            self.state("abort by rule", partial(self.end, ref, status, number), 2)

    def erase(self) -> None:
        """DELETE /v1/me, then a sweep at once."""
        self.erased = True
        self.deliver("erase", self.begin_erasure)
        self.deliver("sweep of deletions 0", self.look_at_deletions)

    def end_erasure(self) -> None:
        """The sweeps that follow, until long after the last step can write."""
        for number in range(1, ERASURE_SWEEPS):
            self.clock.now += 300
            self.deliver(f"sweep of deletions {number}", self.look_at_deletions)

    def cancel(self, ref: ChatRef) -> None:
        """DELETE /v1/chats/{id}, repeated until it is answered."""
        with contextlib.suppress(StepFailed):
            self.state("cancel", partial(self.stop, ref), 3)

    def look_after(self) -> None:
        """The schedule: half a minute later, and twice when every deadline has passed."""
        for seconds in (30, self.chat_seconds + 1, 300):
            self.clock.now += seconds
            if not self.open_chats():
                continue
            try:
                self.sweep("")
            except StepFailed:
                continue
            for chat in self.open_chats():
                if self.execution(chat.chat_id) == "RUNNING" and not self.scenario.vanishes_after:
                    self.machine(ref_of(chat))
        for _ in self.scenario.rounds:  # each may end in a pause
            if any(chat.status == "paused" for chat in self.chats()):
                self._end_pauses()

    def _end_pauses(self) -> None:
        """Nobody has decided, or no decision got through: every pause has an end."""
        self._pass_pauses()
        for _ in range(2):  # a sweep may fail once
            with contextlib.suppress(StepFailed):
                self.sweep("at the end of every pause")
            self.clock.now += 30
        for chat in self.open_chats():
            self._go_on_after_pause(ref_of(chat))
        for _ in range(2):
            self.clock.now += self.chat_seconds + 1
            with contextlib.suppress(StepFailed):
                self.sweep("")

    def sweep(self, name: str) -> None:
        """The sweep; the schedule does not repeat it, the function's asynchronous retries do."""
        self.state(f"sweep {name}".strip(), self.look_at_open_chats, 2)

    def ask_again(self) -> Chat:
        """The user's next query, in the same conversation if there is one, without a fault."""
        self.fault = None
        self.trace = self.quiet
        known = self.chats()
        is_declined = all(chat.status == "done" for chat in known)  # another end leaves its words in the past
        self.scenario = Scenario("next", declines=self.scenario.declines if known and is_declined else "")
        self.look().ledger.grant(self.user, "grant-1", 100, "for the next query", self.clock())
        self.post("And then?", known[-1].conversation_id if known else "")
        (chat,) = [chat for chat in self.chats() if chat.chat_id not in {old.chat_id for old in known}]
        self.machine(ref_of(chat))
        chat_now = self.look().chats.load(self.user, chat.chat_id)
        assert chat_now is not None
        return chat_now

    # ── the functions ─────────────────────────────────────────────────────────────────────────────

    def start(self, message: str, conversation_id: str, process: Process) -> int:
        """POST /v1/chats → the status of the response."""
        if self.erased:
            return 401
        repeat = Repeat("key-1", fingerprint(message.encode())) if self.scenario.keyed else None
        stores, executions = self.stores(process), self.executions(process)
        if self.scenario.never_started:
            process.step_functions.start_execution = lambda **_: process._die()
        try:
            first = first_chat(stores, executions, self.user, repeat) if repeat else None
            if first is None:
                profile = "" if conversation_id else self.scenario.profile
                key_id = API_KEY if self.scenario.by_api_key else ""
                files = self.scenario.files
                new = NewChat(self.user, message, conversation_id, profile, files, self.user, key_id)
                output = SCHEMA if self.scenario.output else None
                new = replace(new, tools=self.scenario.tools, output=output, wanted=self.scenario.wanted)
                if self.scenario.goes_on and conversation_id:
                    new = replace(new, message="", continues="cut")
                if self.scenario.imports:
                    past = BroughtPast(conversation_id, self.scenario.earlier, self._imported())
                    new = replace(new, conversation_id="", past=past)
                named = [] if conversation_id else self.uploads
                if named:
                    found = zip(named, usable(stores, self.user, named), strict=True)
                    files = tuple(fetched(stores, self.user, *upload) for upload in found)
                    new = replace(new, files=files)
                start_chat(
                    stores, executions, new, repeat,
                    costs=CostSettings(MODEL, self.summaries),
                    noted=partial(use, stores, named), taken_back=partial(reopen, stores, named),
                )  # fmt: skip
                discard(stores, self.user, named)
        except ApiError as error:
            if repeat and error.code == "upload_used" and first_chat(stores, executions, self.user, repeat):
                return 202
            return error.status
        return 202

    def _imported(self) -> tuple[tuple[Record, ...], ...]:
        now, first = iso(self.clock()), self.scenario.earlier + 1
        return tuple(
            (
                Record(query_id(number), "message", "user", f"{IMPORTED} {number}?", now),
                Record(response_id(number), "message", "assistant", IMPORTED * 300, now, 2, stop="complete"),
            )
            for number in range(first, first + self.scenario.imports)
        )

    @property
    def summaries(self) -> SummarySettings:
        """What the deployment sets for the calls after an answer."""
        return SummarySettings(MODEL, titles=bool(self.scenario.titled))

    def deployed(self) -> AgentDeployment:
        """The deployment: its profiles ask for the scenario's tools."""
        approval = ApprovalPolicy("never", ask=self.scenario.asks)
        asks_user = any(QUESTION in asked for asked in self.scenario.rounds)
        more = (QUESTION.tool,) if asks_user else ()
        profiles = {
            name: replace(profile, approval=approval, tools=(*profile.tools, *more))
            for name, profile in all_profiles().items()
        }
        return AgentDeployment(MODEL, profiles=profiles)

    def turn(self, ref: ChatRef, process: Process) -> Any:
        """One delivery of a turn."""
        return self.take_turn(ref, process)

    def take_turn(self, ref: ChatRef, process: Process, draw: Callable[[], float] = random.random) -> Any:
        """A turn as the function takes it."""
        settings = TurnSettings(self.deployed(), max_cost=self.scenario.max_cost)
        stores, model = self.stores(process), self.claude(process)
        return run_turn(ref, stores, lambda _: model, settings, waiting=WaitTiming(self._sleep, draw))

    def tool(self, ref: ChatRef, call_id: str, process: Process, fn: str = "tool") -> Any:
        """One delivery of a tool's call; ``fn`` is the function that has it."""
        stores = self.stores(process)
        return run_tool(ref, call_id, stores, lambda running: self._execute(process, stores, running), 60)

    def summarise(self, ref: ChatRef, process: Process) -> Any:
        """One delivery of the state behind the answer."""
        stores, model = self.stores(process), self.claude(process)
        return summarise(ref, stores, lambda _: model, self.summaries, sleep=self.clock.sleep)

    def end(self, ref: ChatRef, error: str, number: int, process: Process) -> Any:
        """One delivery to `abort`, for an execution."""
        return end_chat(self.stores(process), ref, failure_of({"Error": error}), execution=number)

    def decide(self, ref: ChatRef, only: int | None, process: Process) -> Any:
        """POST /v1/chats/{id}/decisions, of all calls that ask or ``only`` of one; what is refused stays refused."""
        stores = self.stores(process)
        loaded = stores.chats.load_with_turns(ref.user, ref.chat_id)
        if loaded is None:
            return None
        asked = [call for call in loaded[1][-1].calls if call.asks]
        if only is not None and not asked[only].is_open:
            return None
        wanted = [self._wanted(call) for call in (asked if only is None else [asked[only]])]
        with contextlib.suppress(ApiError):
            executions = self.executions(process)
            return decide_calls(stores, executions, loaded[0], wanted, "user", self.deployed())
        return None

    def _wanted(self, call: ToolCall) -> CallDecision:
        how = self.scenario.decided
        if call.asks == "question" and how != "decline":
            return CallDecision(call.id, answer="The red one.")
        if call.asks == "client_tool" and how != "decline":
            return CallDecision(call.id, result=ToolResult(FOUND))
        changed = freeze({**call.input, "text": "Edited."}) if how == "edit" else None
        reason = "Not today." if how == "decline" else ""
        return CallDecision(call.id, how != "decline", reason, changed, how == "allow")

    def stop(self, ref: ChatRef, process: Process) -> Any:
        """DELETE /v1/chats/{id}."""
        stores = self.stores(process)
        chat = stores.chats.load(ref.user, ref.chat_id)
        return cancel_chat(stores, self.executions(process), chat) if chat else None

    def look_at_open_chats(self, process: Process) -> Any:
        """One delivery to `sweep`."""
        return sweep(self.stores(process), self.executions(process), 120)

    def begin_erasure(self, process: Process) -> None:
        """One delivery of DELETE /v1/me."""
        stores = self.stores(process)
        erasure = begin_erasure(stores, self.user, RETENTION)
        stop_user(stores, self.executions(process), Pool(self.pool, process), erasure, lambda: True)

    def look_at_deletions(self, process: Process) -> None:
        """One delivery to `sweep`, its deletions only."""
        pool = Pool(self.pool, process)
        sweep_deletions(self.stores(process), self.executions(process), pool, SWEEP_SECONDS)

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def chats(self) -> list[Chat]:
        """Every chat, oldest first."""
        with self.aws.lock:
            items = list(self.aws.table(SETTINGS.chats_table).items())
        return sorted(
            (chat_of(from_wire(item)) for (_, sk), item in items if sk == "STATE"),
            key=lambda chat: (chat.created_at, chat.query),
        )

    def has_turn(self, chat: Chat, turn: int) -> bool:
        """Whether a turn is on record."""
        return (chat.pk, turn_key(turn)) in self.aws.table(SETTINGS.chats_table)

    def _number(self, chat_id: str) -> int:
        return next((chat.execution for chat in self.chats() if chat.chat_id == chat_id), 1)

    def execution(self, chat_id: str, number: int | None = None) -> str:
        """The status of a chat's execution, the latest or that of a number; "" if there is none."""
        return self.aws.executions.get(execution_name(chat_id, number or self._number(chat_id)), "")

    def end_execution(self, chat_id: str, status: str, number: int = 1) -> None:
        """End it."""
        self.aws.executions[execution_name(chat_id, number)] = status

    def open_chats(self) -> list[Chat]:
        """Those that have not ended."""
        return [chat for chat in self.chats() if chat.status in ("running", "answered")]


def ref_of(chat: Chat) -> ChatRef:
    """The payload of a step for this chat."""
    return ChatRef(chat.user, chat.chat_id, chat.conversation_id, chat.entry)


def _position_of(request: wire.Request) -> tuple[int, int]:
    """The running query's number and the turn that the request is for."""
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        for block in message.content if message.role == "user" else ():
            match = _RUNNING_QUERY.match(str(getattr(block, "text", "")))
            if match:
                said = [later for later in request.messages[index:] if later.role == "assistant"]
                return int(match[1]), len(said) + 1
    raise AssertionError("no query in the request")


def _messages(request: wire.Request) -> str:
    """The messages as every attempt must send them; only a late one, or one behind an attempt that was lost and has
    cost too much, is told that the limit is reached."""
    blocks = (block for message in request.messages for block in message.content)
    said = [tokens.canonical(block) for block in blocks]
    return "\n".join(text for text in said if not _LIMIT.search(text))


def _tool_use(asked: Asked) -> dict[str, Any]:
    return {"type": "tool_use", "id": fresh_id("toolu"), "name": asked.tool, "input": asked.input}


def _json_response(reply: Reply) -> httpx2.Response:
    return httpx2.Response(200, json=sse.message(reply, fresh_id("msg"), MODEL, tokens.Usage(PROMPT)))
