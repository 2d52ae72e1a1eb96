"""A user with data of every kind, who is erased while one outside call fails."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.credits.audit import Books, enter
from dualtrack.storage.cache import StoredToken
from dualtrack.storage.conversations import Conversation
from dualtrack.storage.dynamo import to_wire

from tests.drivers.crash_world import (
    BIG,
    DOCUMENTATION,
    ERASURE_SWEEPS,
    SEARCH,
    TEXT_FILE,
    Scenario,
    World,
    ref_of,
)
from tests.drivers.faults import Fault, Process, Trace, deliver, kinds_at
from tests.drivers.invariants import erasure_faults, names

if TYPE_CHECKING:
    from collections.abc import Callable

USER: Final = "user-to-erase"
OTHER: Final = "somebody-else"
SECRET: Final = "a word of theirs"
SCENARIO: Final = Scenario(
    SECRET,
    rounds=((DOCUMENTATION, SEARCH),),
    charged=17,
    result=f"{SECRET} {BIG[:600_000]}",
    files=(replace(TEXT_FILE, data=f"{SECRET}. ".encode() * 200),),
    earlier=6,
    digest_waits=True,
    always_asks=True,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the fault struck, and what was wrong afterwards."""

    struck: bool
    wrong: tuple[str, ...]


@dataclass
class Erased:
    """A user with a conversation with a digest, files, a body in S3, a running chat that has searched it, and a
    connection; and another user.
    """

    fault: Fault | None = None
    world: World = field(default_factory=lambda: World(SCENARIO, user=USER))

    def __post_init__(self) -> None:
        world = self.world
        world.post(f"{SECRET} " * 200, world.conversation_id)
        world.machine(ref_of(world.chats()[0]))
        world.post(SECRET, world.conversation_id)
        self.running = ref_of(world.chats()[-1])
        world.turn(self.running, Process(world.quiet, "turn"))
        world.tool(
            replace(self.running, turn=1), f"q{SCENARIO.earlier + 2}-t2", Process(world.quiet, "search")
        )
        stores = world.look()
        stores.ledger.grant(USER, f"payment {SECRET}", 100, f"for {SECRET}", world.clock())
        stores.cache.save_token(USER, StoredToken(SECRET.encode(), 1))
        other = World(Scenario("other"), user=OTHER, aws=world.aws, clock=world.clock)
        other.post("What is it?")
        world.pool = {USER, OTHER}
        self.kept = self._of_other()
        self.before = reduce(enter, stores.ledger.movements(USER), Books())
        self.trace = Trace(world.aws, self.fault)

    def run(self) -> None:
        """Send the request, then run sweeps for a long time."""
        world = self.world
        self.deliver("request", world.begin_erasure)
        if not world.look().deletions.is_refused(USER):
            world.begin_erasure(Process(world.quiet, "request again"))
        for number in range(ERASURE_SWEEPS + 1):
            self.deliver(f"sweep {number}", world.look_at_deletions)
            world.clock.now += 300

    def deliver(self, step: str, body: Callable[[Process], None]) -> None:
        """Run a step once and ignore its outcome."""
        deliver(self.trace, self.world.quiet, step, body)

    def faults(self) -> list[str]:
        """What is wrong afterwards."""
        world = self.world
        stores = world.look()
        charged = stores.ledger.load(USER)
        faults = [f"an account is left: {charged}"] if charged.seq else []
        # the running chat was cancelled after its first turn: 5, 10 and 2 for its tools
        (day,) = self.before.charged
        spent = {day: self.before.charged[day] + SCENARIO.charged}
        faults += erasure_faults(stores, USER, SECRET, replace(self.before, charged=spent))
        faults += [] if self._of_other() == self.kept else ["another user's items have changed"]
        faults += [f"the pool has {world.pool}"] if world.pool != {OTHER} else []
        return faults

    def _of_other(self) -> list[Any]:
        tables = self.world.aws.tables
        return [
            (name, key, item)
            for name, table in sorted(tables.items())
            for key, item in sorted(table.items())
            if names(OTHER, item)
        ]


def all_cases() -> list[Fault]:
    """Every call of a run without a fault, with every fault it can have."""
    erased = Erased()
    erased.run()
    sites = dict.fromkeys(erased.trace.sites)
    return [Fault(site, kind) for site in sites for kind in (*kinds_at(site), "held")]


def run(fault: Fault) -> Outcome:
    """One case."""
    erased = Erased(fault)
    erased.run()
    return Outcome(erased.trace.struck, tuple(erased.faults()))


@dataclass
class Long:
    """A conversation of this many queries, with items of kinds unknown to the deletion."""

    queries: int
    world: World = field(default_factory=lambda: World(Scenario("long"), user=USER))
    conversation_id: str = "cv_01k0000000000000000000000a"

    def __post_init__(self) -> None:
        history, chats = self.world.aws.table("history"), self.world.aws.table("chats")
        pk = f"CONV#{USER}#{self.conversation_id}"
        stores = self.world.look()
        stores.conversations.create(
            Conversation(USER, self.conversation_id, "Long", "assistant", "", "", "", self.queries)
        )
        for number in range(1, self.queries + 1):
            chat = f"ch_{number:026d}"
            for sk in (f"F#{number:06d}#z", f"S#{number:06d}", f"K#{number:06d}", f"B#{number:040x}"):
                history[pk, sk] = to_wire({"pk": pk, "sk": sk})
            sk = f"F#{number:06d}"
            history[pk, sk] = to_wire({"pk": pk, "sk": sk, "chat": chat})
            for sk in ("EV#00000001", "TURN#001"):
                key = {"pk": f"CHAT#{USER}#{chat}", "sk": sk}
                chats[key["pk"], sk] = to_wire(key)
            if number % 100 == 0:
                self.world.aws.objects[f"{USER}/{self.conversation_id}/{number}"] = b"x"

    def left(self) -> int:
        """Items and objects that are still there, except the list of deletions."""
        aws = self.world.aws
        tables = (aws.table("history"), aws.table("chats"))
        items = [key for table in tables for key in table if key[0] != "DELETIONS"]
        return len(items) + len(aws.objects)

    def delete(self, process: Process, has_time: Callable[[], bool] = lambda: True) -> None:
        """DELETE /v1/conversations/{id}."""
        delete_conversation(self.world.stores(process), USER, self.conversation_id, has_time)
