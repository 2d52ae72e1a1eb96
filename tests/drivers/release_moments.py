"""What a release writes, caught in the middle: running chats, an erasure, jobs on corpora."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from dualtrack.api.key_format import digest_of
from dualtrack.chat import regroup
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.models.wanted import Wanted
from dualtrack.notices import Notice
from dualtrack.profiles import all_profiles
from dualtrack.storage.cache import StoredToken
from dualtrack.storage.keys import ApiKey
from dualtrack.tools.mcp.catalogue import LeftOut, ServerTools, store_listing

from tests.drivers.corpus_world import CorpusWorld, course, limited
from tests.drivers.crash_world import (
    API_KEY,
    CAPS,
    CLIENT_TOOL,
    DOCUMENTATION,
    IMAGE,
    LOOKUP,
    NOTE,
    PAUSED,
    QUESTION,
    READ,
    SEARCH,
    TEXT_FILE,
    UNKNOWN,
    USER,
    Scenario,
    World,
    ref_of,
)
from tests.drivers.faults import Died, Fault, Process, Site
from tests.drivers.graph_corpus import GraphWorld, table
from tests.drivers.plugin_parts import parts
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.drivers.memory_aws import MemoryAws

CHAT: Final = Scenario(
    "a chat of this release",
    rounds=((DOCUMENTATION, NOTE, UNKNOWN), (READ,)),
    charged=20,
    always_asks=True,
    caches=True,
)
SEARCHING: Final = Scenario("a search", rounds=((SEARCH,),), always_asks=True)

KEY: Final = "key-1"
"""The idempotency key of `World.post`."""

ERASURE: Final = "Sweep"
JOB: Final = "Ingest"
"""A job on the courses: its document BOATS is published, and TABLES is being read."""

BOATS: Final = course("Boats", "Varnish the deck. " * 20, "Sail. " * 20)
TABLES: Final = course("Tables", "Plane the top. " * 20)


@dataclass(frozen=True, slots=True)
class Moment:
    """The account, and the state that a workflow is about to enter.

    ``state``: of a running chat, the last, Turn, RunTools, Summarise or Paused, with the last recorded ``turn`` and the
    ``calls`` to run, as in the state of the release's execution; `ERASURE` before the sweep; `JOB` before a step.
    """

    name: str
    aws: MemoryAws
    now: float
    state: str
    turn: int = 0
    calls: tuple[str, ...] = ()

    def world(self) -> World:
        """A world that continues from here."""
        world = World(CHAT, clock=FakeClock(self.now))
        world.aws.tables, world.aws.objects = self.aws.tables, self.aws.objects
        world.aws.executions = self.aws.executions
        return world

    def corpora(self) -> CorpusWorld:
        """The same for jobs on the courses."""
        return CorpusWorld(aws=self.aws, clock=FakeClock(self.now))


def moments() -> Iterator[Moment]:
    """Moments with everything that this release stores."""
    yield from _chats()
    yield _second_query()
    yield _behind_a_whole_query()
    yield _fork()
    yield _erasure()
    yield _job()


# ── chats ─────────────────────────────────────────────────────────────────────────────────────────


def _chats() -> Iterator[Moment]:
    """Between any two states of a first query."""
    world = _posted(keyed=True)
    without = ServerTools(left_out=(LeftOut("shed", "odd", "its schema is none"),))
    store_listing(world.look().cache, "shed", without, world.clock())
    yield _moment("before the first turn", world, "Turn")

    world = _posted(files=(TEXT_FILE,), by_upload=True)
    yield _moment("a file sent by reference", world, "Turn")

    world = _posted(files=(TEXT_FILE, IMAGE), busy=1, written="It is")
    ref = ref_of(world.chats()[0])
    world.clock.now += world.turn(ref, Process(world.trace, "turn 1"))["seconds"]
    world.begin_turn(ref, tries=2)
    yield _moment("cut after its first words", world, "Turn")
    calls = _turn(world, 0)
    yield _moment("tools asked for", world, "RunTools", 1, calls)

    world = _posted(written="It is", wanted=Wanted(500, ("§",)))
    for tries in (1, 2):
        world.begin_turn(ref_of(world.chats()[0]), tries)
    yield _moment("cut twice for a client that stops it", world, "Turn")

    world = _posted(Fault(Site("tool q1-t2", "tool", "execute", "kit_note"), "crash after"))
    first, second = _turn(world, 0)
    _tool(world, 1, first)
    try:
        _tool(world, 1, second)
    except Died:
        yield _moment("a tool begun", world, "RunTools", 1, (second,))

    world = _posted()
    _run_tools(world, 1, _turn(world, 0))
    yield _moment("between two turns", world, "Turn", 1)

    yield _moment("waiting for approval", _paused(asks=(NOTE.tool,)), PAUSED, 1)

    for_others = ((*CHAT.rounds[0], LOOKUP, QUESTION), *CHAT.rounds[1:])
    world = _paused(rounds=for_others, tools=(CLIENT_TOOL,))
    yield _moment("waiting for its client and an answer", world, PAUSED, 1)

    world = _paused(asks=(NOTE.tool,))
    world.decide(ref_of(world.chats()[0]), None, Process(world.trace, "decide"))
    yield _moment("approved", world, "Turn", world.chats()[0].entry)

    world = _posted(result="0123456789abcdef, not compressible enough. " * 400)
    _run_tools(world, 1, _turn(world, 0))
    _run_tools(world, 2, _turn(world, 1))
    yield _moment("a long result", world, "Turn", 2)

    world = _posted(by_api_key=True)
    _store_key(world)
    _store_notice(world)
    for part in parts("release_moments"):
        part.store(world)
    _run_tools(world, 1, _turn(world, 0))
    _run_tools(world, 2, _turn(world, 1))
    _turn(world, 2)
    yield _moment("answered, not summed up", world, "Summarise", 3)


def _second_query(**changes: Any) -> Moment:
    """The second query of a conversation, its view pinned and its first turn recorded."""
    world = _posted(**changes)
    world.machine(ref_of(world.chats()[0]))
    world.post("And now?", world.chats()[0].conversation_id)
    calls = _turn(world, 0)
    return _moment("a second query", world, "RunTools", 1, calls)


def _behind_a_whole_query() -> Moment:
    """The same in a profile in which the first query has nothing to shorten: it is sent whole."""
    assistant = all_profiles()["assistant"]
    history = replace(assistant.history, whole_characters=10_000)
    with patch.dict(all_profiles(), assistant=replace(assistant, history=history)):
        moment = _second_query(rounds=((DOCUMENTATION, NOTE),))
    return replace(moment, name="behind a whole query")


def _fork() -> Moment:
    """A query in a fork of a conversation that has been folded and searched, its first two queries regrouped; another
    one is deleted."""
    assistant = replace(all_profiles()["assistant"], track_tokens=400)
    blocks = patch.multiple("dualtrack.storage.search_index", BLOCK=2), patch.object(regroup, "BLOCK", 2)
    with patch.dict(all_profiles(), assistant=assistant), blocks[0], blocks[1]:
        world = _posted()
        world.look().ledger.grant(USER, "pack-1", 100, "a pack", world.clock())
        world.machine(ref_of(world.chats()[0]))
        parent = world.chats()[0].conversation_id
        world.scenario = SEARCHING
        for said in (f"Always be brief.\n{'word ' * 250}", "And what else?"):
            world.post(said, parent)
            world.machine(ref_of(world.chats()[-1]))
        world.scenario = Scenario("deleted")
        world.post("A word of no use.")
        deleted = world.chats()[-1]
        world.machine(ref_of(deleted))
        delete_conversation(world.look(), USER, deleted.conversation_id)
        world.scenario = CHAT
        fork = fork_conversation(world.look(), USER, parent, 4)
        world.post("And now?", fork.conversation_id)
        calls = _turn(world, 0)
    return _moment("a query in a fork", world, "RunTools", 1, calls)


def _posted(fault: Fault | None = None, **changes: Any) -> World:
    world = World(replace(CHAT, **changes), fault)
    world.post()
    return world


def _store_key(world: World) -> None:
    """The item of the key, as making it writes it."""
    stores, now = world.look(), int(world.clock())
    key = ApiKey(API_KEY, USER, "nightly report", digest_of("old"), ("chat", "read"), now, ("assistant",))
    used = replace(
        key.rotated(digest_of("new"), now + 60), last_used_at=now, window=now - now % 60, requests=1
    )
    stores.ledger.add_key(USER, API_KEY, CAPS, now, [stores.keys.create_action(used)])


def _store_notice(world: World) -> None:
    """Something that is told once, and was not told yet."""
    now = int(world.clock())
    data = {"chat_id": "ch_1", "stop": None}
    notice = Notice("msg_2_done", "chat.done", now * 1000, data, "assistant")
    world.look().outbox.tell_once(USER, notice, now + 60)


def _paused(**changes: Any) -> World:
    world = _posted(**changes)
    _run_tools(world, 1, _turn(world, 0))
    _turn(world, 1)
    world.end_execution(world.chats()[0].chat_id, "SUCCEEDED")
    return world


def _turn(world: World, recorded: int) -> tuple[str, ...]:
    ref = replace(ref_of(world.chats()[-1]), turn=recorded)
    outcome = world.turn(ref, Process(world.trace, f"turn {recorded + 1}"))
    return tuple(call["id"] for call in outcome["calls"])


def _run_tools(world: World, turn: int, calls: tuple[str, ...]) -> None:
    for call in calls:
        _tool(world, turn, call)


def _tool(world: World, turn: int, call_id: str) -> None:
    ref = replace(ref_of(world.chats()[-1]), turn=turn)
    world.tool(ref, call_id, Process(world.trace, f"tool {call_id}"))


def _moment(name: str, world: World, state: str, turn: int = 0, calls: tuple[str, ...] = ()) -> Moment:
    return Moment(name, world.aws, world.clock.now, state, turn, calls)


# ── what no chat writes ───────────────────────────────────────────────────────────────────────────


def _erasure() -> Moment:
    """A user who is connected to a server is erased while a chat runs; the sweep has not begun."""
    world = _posted()
    world.look().cache.save_token(USER, StoredToken(b"sealed", int(world.clock())))
    _run_tools(world, 1, _turn(world, 0))
    world.begin_erasure(Process(world.quiet, "erase"))
    return _moment("an erasure begun", world, ERASURE)


def _job() -> Moment:
    """A job that adds to published courses, after its first step; and a published graph, without its database, which
    is a file of the engine's own form.
    """
    world = CorpusWorld()
    world.run(world.begin({"boats.txt": BOATS}))
    graph = GraphWorld(aws=world.aws, clock=world.clock)
    files = {
        "nodes.csv": table("node_id,label,name,height", "a1,Asset,Pump,2.5", "l1,Location,Hall,"),
        "edges.csv": table("from,type,to", "a1,LOCATED_IN,l1"),
    }
    graph.run(graph.begin(files))
    for key in [key for key in world.aws.objects if key.startswith(f"corpora/{graph.corpus}/")]:
        if not key.endswith(("/schema", "/documents")):
            del world.aws.objects[key]
    job = world.begin({"tables.txt": TABLES})
    assert world.step(job, limited(1)) == "again"
    return Moment("a job on the courses", world.aws, world.clock.now, JOB)
