"""The steps of the workflow over real stores (tests/drivers/aws.py) and the offline model, driven in one process.

`World.run` goes through the states as the machine does: turn, tools, turn …, summarise, abort. It is for
properties of many conversations; the deployed machine has tests of its own in tests/e2e.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import boto3
from dualtrack.chat.agent import AgentDeployment
from dualtrack.chat.cost_hold import CostSettings
from dualtrack.chat.end_chat import end_chat, failure_of
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.run_tool import run_tool
from dualtrack.chat.run_turn import TurnOutcome, run_turn
from dualtrack.chat.start_chat import start_chat
from dualtrack.chat.summarise import summarise
from dualtrack.chat.turn_attempt import TurnCallbacks, TurnSettings, WaitTiming
from dualtrack.memory.passages import SEARCH_TOOL
from dualtrack.memory.summaries import SummarySettings
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.models.thinking import Thinking
from dualtrack.profiles import DEFAULT_PROFILE, all_profiles
from dualtrack.requests import ChatRef
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.settings import Settings
from dualtrack.storage.bodies import StoredBody
from dualtrack.storage.dynamo import Action, transact
from dualtrack.storage.stores import Stores, build_stores
from dualtrack.tools.courses.library import CourseLibrary
from dualtrack.tools.registry import in_house_tools
from dualtrack.tools.running import ToolNeeds
from dualtrack.tools.search_needs import SearchNeeds
from dualtrack_stack.local.offline_model.server import OfflineModel, serve_offline_model

from tests.drivers.aws import aws_in_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pytest
    from dualtrack.knowledge.embedder import Embedder
    from dualtrack.models.protocol import Model
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.chats import Chat
    from dualtrack.tool_values import ToolResult
    from dualtrack.tools.registry import InHouseTools
    from dualtrack.tools.running import Running

SETTINGS = Settings(
    history_table="history",
    chats_table="chats",
    credits_table="credits",
    cache_table="cache",
    bodies_bucket="bodies",
)
LOOP: Final = BackgroundLoop()
"""Of all searches: an embedder belongs to the loop of its first call."""


class FakeClock:
    """A simulated clock: it moves when told, and a little with every reading. A reading in one thread does not undo
    what another one has set."""

    def __init__(self, now: float = 1_795_000_000.0) -> None:
        self._now, self._lock = now, threading.Lock()

    @property
    def now(self) -> float:
        """Without moving it."""
        return self._now

    @now.setter
    def now(self, value: float) -> None:
        with self._lock:
            self._now = value

    def __call__(self) -> float:
        with self._lock:
            self._now += 0.001
            return self._now

    def sleep(self, seconds: float) -> None:
        """Move the clock without waiting."""
        with self._lock:
            self._now += seconds


@dataclass
class NoExecutions:
    """Admits chats without a workflow: the world drives them."""

    started: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    statuses: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Remember it."""
        self.started.append(name)

    def stop(self, name: str, cause: str) -> None:
        """Remember it."""
        self.stopped.append(name)

    def status(self, chat_id: str) -> str | None:
        """The status that a test has set."""
        return self.statuses.get(chat_id)


@dataclass
class World:
    """Stores, a model, a clock, and tools by name."""

    stores: Stores
    model: OfflineModel
    clock: FakeClock
    claude: Model
    executions: NoExecutions = field(default_factory=NoExecutions)
    model_name: str = "claude-haiku-4-5-20251001"
    summary_model: str = ""
    titles: bool = False
    """Whether the model gives conversations their titles."""
    max_cost: float = 0.0
    thinking: Thinking = field(default_factory=Thinking)
    tools: Mapping[str, Callable[[Running], ToolResult]] = field(default_factory=lambda: MappingProxyType({}))
    voyage: Embedder | None = None
    """Voyage's embedder of the function `search`; None: no key."""
    local: Any = None
    """The function `embed` as `search` uses it."""

    @property
    def summaries(self) -> SummarySettings:
        """How summaries are made."""
        model = self.summary_model or self.model_name
        return SummarySettings(model, self.thinking, titles=self.titles)

    def take_turn(
        self,
        ref: ChatRef,
        told: TurnCallbacks = TurnCallbacks(),  # noqa: B008 - frozen
        draw: Callable[[], float] = random,
        serve: Callable[[str], Model] | None = None,
        **changed: Any,
    ) -> TurnOutcome:
        """A turn as the function takes it; ``changed``: other settings."""
        settings = TurnSettings(
            AgentDeployment(self.model_name, self.thinking, summary_model=self.summary_model),
            self.max_cost,
        )
        waits = WaitTiming(self.clock.sleep, draw)
        return run_turn(
            ref, self.stores, serve or (lambda _: self.claude), replace(settings, **changed), told, waits
        )

    def start(self, message: str, user: str = "ann", conversation_id: str = "", **more: Any) -> Chat:
        """Admit a chat as POST /v1/chats does."""
        new = NewChat(user, message, conversation_id, **more)
        executions: Any = self.executions
        costs = CostSettings(self.model_name, self.summaries, self.max_cost)
        return start_chat(self.stores, executions, new, None, costs=costs)

    def turn(self, chat: Chat, recorded: int) -> TurnOutcome:
        """The Turn state."""
        return self.take_turn(replace(ref_of(chat), turn=recorded))

    def tool(self, chat: Chat, turn: int, call_id: str) -> None:
        """The Tool state."""
        run_tool(replace(ref_of(chat), turn=turn), call_id, self.stores, self._execute, 60.0)

    def summarise(self, chat: Chat) -> None:
        """The Summarise state."""
        summarise(
            ref_of(chat),
            self.stores,
            lambda _: self.claude,
            self.summaries,
            sleep=self.clock.sleep,
            embedder=lambda: self.local,
        )

    def abort(self, chat: Chat, error: str = "States.TaskFailed") -> None:
        """The Abort state."""
        end_chat(self.stores, ref_of(chat), failure_of({"Error": error}))

    def answer(self, chat: Chat) -> str:
        """All states up to the answer; returns what `turn` said last."""
        recorded = 0
        while True:
            outcome = self.turn(chat, recorded)
            recorded = outcome["turn"]
            if outcome["next"] not in ("tools", "turn"):
                return str(outcome["next"])
            for call in outcome["calls"]:
                self.tool(chat, recorded, call["id"])

    def run(self, chat: Chat) -> Chat:
        """The whole workflow; the chat as it is afterwards."""
        if self.answer(chat) == "answered":
            self.summarise(chat)
        return self.load(chat)

    def ask(self, message: str, user: str = "ann", conversation_id: str = "", **more: Any) -> Chat:
        """Start a chat and run it."""
        return self.run(self.start(message, user, conversation_id, **more))

    def load(self, chat: Chat) -> Chat:
        """The chat as it is now."""
        stored = self.stores.chats.load(chat.user, chat.chat_id)
        assert stored is not None
        return stored

    def _execute(self, running: Running) -> ToolResult:
        in_house = self._searches if running.call.tool == SEARCH_TOOL else self._in_house
        return self.tools.get(running.call.tool, in_house)(running)

    @cached_property
    def _searches(self) -> InHouseTools:
        return in_house_tools("search", lambda: search_needs(self.stores, self.voyage, self.local))

    @cached_property
    def _in_house(self) -> InHouseTools:
        return in_house_tools("tool", lambda: ToolNeeds(self.stores))


def search_needs(
    stores: Stores, voyage: Embedder | None = None, local: Embedder | None = None
) -> SearchNeeds:
    """What the function `search` gives its tools, as long as these ask no service."""
    embedders, log = (
        {embedder.model: embedder for embedder in [voyage] if embedder},
        logging.getLogger("search"),
    )
    library = CourseLibrary(stores.corpora, embedders, LOOP, log)
    return SearchNeeds(SETTINGS, stores, library, LOOP, log, voyage=voyage, local=local)


def call_for_summaries(patch: pytest.MonkeyPatch, name: str = DEFAULT_PROFILE) -> None:
    """The profile with a call for each summary, as it has them beside a summary model of a tenth of the turn's
    price."""
    profile = all_profiles()[name]
    history = replace(profile.history, summaries="at_once")
    patch.setitem(all_profiles(), name, replace(profile, history=history))


def store(stores: Stores, writes: Sequence[Write]) -> None:
    """Write what a step would record, without its events."""
    for write in writes:
        if isinstance(write, StoredBody):
            stores.bodies.write(write)
    transact(stores.chats.client, [write for write in writes if isinstance(write, Action)])


def ref_of(chat: Chat) -> ChatRef:
    """The payload of a step for this chat."""
    return ChatRef(chat.user, chat.chat_id, chat.conversation_id)


@contextlib.contextmanager
def make_world(**tools: Callable[[Running], ToolResult]) -> Iterator[World]:
    """A fresh world; ``tools`` answer the calls to in-house tools other than retrieve_full_context."""
    clock = FakeClock()
    with aws_in_process(), serve_offline_model(now=lambda: clock.now) as model:
        dynamodb = boto3.client("dynamodb", region_name="us-east-1")
        s3 = boto3.client("s3", region_name="us-east-1")
        make_tables(dynamodb)
        s3.create_bucket(Bucket=SETTINGS.bodies_bucket)
        stores = build_stores(SETTINGS, dynamodb, s3, clock)
        claude = connect(model.url, "test-key", asks_about_cache=True)
        yield World(stores, model, clock, claude, tools=MappingProxyType(tools))


def make_tables(dynamodb: Any) -> None:
    """The four tables, keyed as in the data stack."""
    for name, indexes in (
        (SETTINGS.history_table, (("listed", "listed", "latest", "S"),)),
        (SETTINGS.chats_table, (("open", "open", "deadline", "N"),)),
        (SETTINGS.credits_table, (("active", "active", "day", "S"),)),
        (SETTINGS.cache_table, ()),
    ):
        attributes = {"pk": "S", "sk": "S"}
        described = []
        for index, hash_key, range_key, kind in indexes:
            attributes |= {hash_key: "S", range_key: kind}
            described.append(
                {
                    "IndexName": index,
                    "KeySchema": [
                        {"AttributeName": hash_key, "KeyType": "HASH"},
                        {"AttributeName": range_key, "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            )
        dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": key, "AttributeType": value} for key, value in attributes.items()
            ],
            **({"GlobalSecondaryIndexes": described} if described else {}),
        )
