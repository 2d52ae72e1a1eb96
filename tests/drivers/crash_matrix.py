"""The crash matrix: every outside call of every step fails in every way it can (tests/drivers/crash_world.py).

The calls are recorded from runs without faults, so a new call enters the matrix without further work.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dualtrack.chat.pay_calls import never_ran, price_of_free
from dualtrack.models.wanted import Wanted
from dualtrack.profiles import DEFAULT_PROFILE, all_profiles, profile_named

from tests.drivers.crash_world import (
    ANSWER,
    BIG,
    CLIENT_TOOL,
    COURSE_SEARCH,
    DOCUMENTATION,
    IMAGE,
    LOOKUP,
    NOTE,
    OUTLINE,
    QUESTION,
    READ,
    READ_FILE,
    RENAMED,
    SEARCH,
    SHORT_FILE,
    TEXT_FILE,
    TITLE,
    UNKNOWN,
    Scenario,
    World,
)
from tests.drivers.faults import Fault, Site, kinds_at
from tests.drivers.invariants import (
    account_faults,
    chat_faults,
    digest_faults,
    erasure_faults,
    index_faults,
    prefix_faults,
    turns_of,
    upload_faults,
)
from tests.drivers.outbox import Unheard
from tests.drivers.plugin_parts import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dualtrack.storage.chats import Chat
    from dualtrack.storage.stores import Stores

NOTED: Final = "What the documentation says. " * 1_500
"""A tool result that is long enough for a note."""

LONG: Final = "What the documentation says. " * 5_000
"""A tool result of which a request contains only the beginning."""

FORBIDDEN: Final = "zyklonform"
"""What the model's service declines wherever it stands."""

TWO_ROUNDS: Final = ((DOCUMENTATION, NOTE, UNKNOWN), (READ,))
CALLING: Final = "calling"
"""The assistant with a call for each summary (`with_other_profiles`)."""


@contextlib.contextmanager
def with_other_profiles() -> Iterator[None]:
    """The deployment has them meanwhile."""
    assistant = profile_named(DEFAULT_PROFILE)
    history = replace(assistant.history, summaries="at_once")
    all_profiles()[CALLING] = replace(assistant, name=CALLING, history=history)
    try:
        yield
    finally:
        del all_profiles()[CALLING]


SCENARIOS: Final = (
    Scenario("no tools"),
    Scenario("a key", keyed=True),
    Scenario("by an API key", profile=CALLING, by_api_key=True, rounds=TWO_ROUNDS, charged=20),
    Scenario("by an API key, failed", by_api_key=True, rounds=TWO_ROUNDS, stopped_after="turn 1", stopped_by="abort", status="failed", stop="", charged=0),
    Scenario("by an API key, a digest written ahead", profile=CALLING, by_api_key=True, earlier=18),
    Scenario("text files", keyed=True, files=(TEXT_FILE, SHORT_FILE), rounds=((READ_FILE,),), charged=7),
    Scenario("an image", files=(IMAGE, SHORT_FILE), rounds=((READ,),), charged=7),
    Scenario("files by reference", keyed=True, files=(TEXT_FILE, IMAGE), by_upload=True, rounds=((READ_FILE,),), charged=7),
    Scenario("a file by reference, by an API key", files=(SHORT_FILE,), by_upload=True, by_api_key=True),
    Scenario("two rounds of tools", rounds=TWO_ROUNDS, charged=20),
    Scenario("a thought before its answer", rounds=((NOTE,),), charged=8, thinks=True),
    Scenario("two megabytes", rounds=((DOCUMENTATION,),), charged=15, result=BIG),
    Scenario("searched", rounds=((DOCUMENTATION, SEARCH),), charged=17, always_asks=True),
    Scenario("a search that keeps what it has made", rounds=((SEARCH,),), charged=7, follow_up="after", always_asks=True),
    Scenario("out of credits", rounds=((NOTE, DOCUMENTATION), (NOTE,)), used_before=41, charged=8, stop="insufficient_credits"),
    Scenario("out of time", rounds=TWO_ROUNDS, late_after="tool q1-t2", charged=18, stop="timeout"),
    Scenario("its cost limit is reached", rounds=TWO_ROUNDS, charged=18, stop="max_cost", max_cost=0.000_001),
    Scenario("results over the budget", rounds=((DOCUMENTATION,) * 4, (DOCUMENTATION, READ)), charged=17, result=LONG),
    Scenario("too long for the model", rounds=((DOCUMENTATION,) * 2,), charged=15, result=LONG, window=9_000),
    Scenario("the last resort", rounds=((DOCUMENTATION,),), stop="context_window", window=1),
    Scenario("refused by the model", status="failed", stop="", charged=0, refused_by_model=True),
    Scenario("a tool refused by the model", rounds=((DOCUMENTATION,),), charged=15, refused_tool=NOTE.tool),
    Scenario("a busy model", rounds=((NOTE,),), charged=8, busy=2),
    Scenario("busy to the end", status="failed", stop="", charged=0, busy=1_000),
    Scenario("cancelled while the model is busy", stopped_after="turn 1", status="cancelled", stop="cancelled", busy=1_000, charged=0),
    Scenario("cancelled before the model is asked", stopped_after="admitted", status="cancelled", stop="cancelled", charged=0),
    Scenario("cancelled in its first words", stopped_after="admitted", written="It is", status="cancelled", stop="cancelled"),
    Scenario("cancelled before its tools", rounds=TWO_ROUNDS, stopped_after="turn 1", status="cancelled", stop="cancelled", charged=18),
    Scenario("cancelled after a tool", rounds=TWO_ROUNDS, stopped_after="tool q1-t1", status="cancelled", stop="cancelled", charged=18),
    Scenario("cancelled before a turn", rounds=TWO_ROUNDS, stopped_after="tool q1-t2", status="cancelled", stop="cancelled", charged=18),
    Scenario("cancelled before the answer", rounds=TWO_ROUNDS, stopped_after="tool q1-t4", status="cancelled", stop="cancelled", charged=20),
    Scenario("cancelled while it writes", rounds=TWO_ROUNDS, stopped_after="tool q1-t4", written="It is 80", status="cancelled", stop="cancelled", charged=20),
    Scenario("cancelled too late", stopped_after="answer"),
    Scenario("aborted from outside", rounds=TWO_ROUNDS, stopped_after="turn 1", stopped_by="abort", status="failed", stop="", charged=0),
    Scenario("past its deadline", rounds=TWO_ROUNDS, stopped_after="tool q1-t1", stopped_by="deadline", status="failed", stop="", charged=0),
    Scenario("never started", never_started=True),
    Scenario("vanished before the answer", rounds=TWO_ROUNDS, vanishes_after="tool q1-t1", status="failed", stop="", charged=0),
    Scenario("vanished after the answer", profile=CALLING, vanishes_after="answer"),
    Scenario("a follow-up before the summaries", profile=CALLING, follow_up="before"),
    Scenario("a follow-up during a summary", profile=CALLING, follow_up="during"),
    Scenario("summaries while a follow-up waits", profile=CALLING, follow_up="while it waits"),
    Scenario("a follow-up after the summaries", profile=CALLING, follow_up="after"),
    Scenario("past tool rounds", rounds=TWO_ROUNDS, charged=20, profile="sessions", follow_up="after", always_asks=True),
    Scenario("stands whole", rounds=TWO_ROUNDS, charged=20, follow_up="before", always_asks=True),
    Scenario("stands whole behind a pause", rounds=((DOCUMENTATION,), (NOTE,)), charged=18, asks=(NOTE.tool,), follow_up="before", always_asks=True),
    Scenario("notes", rounds=((DOCUMENTATION,) * 3,), charged=15, result=NOTED, counts=True, follow_up="before", always_asks=True),
    Scenario("notes, and a further round", rounds=((DOCUMENTATION,) * 2, (DOCUMENTATION, NOTE)), charged=18, result=NOTED, counts=True, follow_up="after", always_asks=True),
    Scenario("notes behind a pause", rounds=((DOCUMENTATION,) * 2, (NOTE,)), charged=18, asks=(NOTE.tool,), result=NOTED, counts=True, follow_up="after", always_asks=True),
    Scenario("nothing to note", rounds=TWO_ROUNDS, charged=20, counts=True, follow_up="before", always_asks=True),
    Scenario("courses", rounds=((OUTLINE,), (COURSE_SEARCH,)), charged=9, profile="courses"),
    Scenario("approved", rounds=((NOTE,), (READ,)), charged=10, asks=(NOTE.tool,)),
    Scenario("approved with a call beside it, by an API key", by_api_key=True, rounds=((NOTE, READ), (NOTE,)), charged=13, asks=(NOTE.tool,)),
    Scenario("one by one", rounds=((NOTE, READ, NOTE),), charged=13, asks=(NOTE.tool,), decided="one by one"),
    Scenario("allowed", rounds=((NOTE, READ), (NOTE,)), charged=13, asks=(NOTE.tool,), decided="allow"),
    Scenario("edited", rounds=((NOTE,),), charged=8, asks=(NOTE.tool,), decided="edit"),
    Scenario("declined", rounds=((NOTE, READ),), charged=7, asks=(NOTE.tool,), decided="decline"),
    Scenario("nobody decides", rounds=((NOTE, READ),), charged=7, asks=(NOTE.tool,), decided="nobody"),
    Scenario("cancelled in its pause", rounds=((NOTE, READ),), charged=7, status="cancelled", stop="cancelled", asks=(NOTE.tool,), decided="cancel"),
    Scenario("approved, out of credits", rounds=((NOTE,),), used_before=43, stop="insufficient_credits", asks=(NOTE.tool,)),
    Scenario("the client's tool", rounds=((LOOKUP,), (READ,)), charged=7, tools=(CLIENT_TOOL,)),
    Scenario("the client's tool beside an approval", rounds=((LOOKUP, NOTE, READ),), charged=10, asks=(NOTE.tool,), tools=(CLIENT_TOOL,), decided="one by one"),
    Scenario("a question", rounds=((QUESTION, READ),), charged=7),
    Scenario("the client is gone", rounds=((LOOKUP,),), tools=(CLIENT_TOOL,), decided="nobody"),
    Scenario("an answer that fits at the second try", rounds=((READ,),), charged=7, output="fits late", follow_up="before", always_asks=True),
    Scenario("an answer that never fits, by an API key", by_api_key=True, keyed=True, stop="invalid_output", output="never fits", follow_up="after"),
    Scenario("a query that must fold", profile=CALLING, earlier=30),
    Scenario("a query that takes what waits", profile=CALLING, earlier=30, digest_waits=True),
    Scenario("a digest written ahead", profile=CALLING, earlier=18),
    Scenario("its pause and its end are noted", rounds=((NOTE,),), charged=8, asks=(NOTE.tool,), heard_by=Unheard),
    Scenario("an imported history", keyed=True, imports=3, files=(TEXT_FILE,)),
    Scenario("an imported history behind a fork", keyed=True, imports=2, earlier=4, by_api_key=True),
    Scenario("its words are declined", stop="refusal", declines=FORBIDDEN),
    Scenario("the words of a result are declined", rounds=((DOCUMENTATION,),), stop="refusal", declines=FORBIDDEN, result=f"It is {FORBIDDEN}.", by_api_key=True),
    Scenario("harmless, and declined behind a declined one", earlier=4, declined_before=True, declines=FORBIDDEN),
    Scenario("harmless, behind a declined one, and the model is busy then", earlier=4, declined_before=True, declines=FORBIDDEN, busy=2, by_api_key=True),
    Scenario("a call that is cut", rounds=((DOCUMENTATION, NOTE),), charged=15, cuts=True),
    Scenario("cut twice", rounds=((NOTE,), (NOTE,)), stop="max_tokens", cuts=True),
    Scenario("an unknown stop", rounds=((READ,),), charged=7, stops_with="compaction", stop="other"),
    Scenario("goes on where it was cut", stops_with="max_tokens", stop="max_tokens", follow_up="after", goes_on=True),
    Scenario("asked for few tokens, and a text that ends it", rounds=((NOTE,),), charged=8, wanted=Wanted(500, ("§",))),
    Scenario("a call of the client's tool at the second try", rounds=((), (LOOKUP,)), tools=(CLIENT_TOOL,), wanted=Wanted(must_call=True)),
    Scenario("titled by the model, by an API key", profile=CALLING, by_api_key=True, titled="by the model"),
    Scenario("renamed while the model writes its title, before a follow-up", titled="by the user meanwhile", follow_up="after"),
    Scenario("searched in a fork that must fold", profile=CALLING, earlier=30, forked=True, rounds=((SEARCH,),), charged=7, always_asks=True),
    *(scenario for part in parts("crash_scenarios") for scenario in part.SCENARIOS),
)  # fmt: skip

BEGINNINGS: Final = ("start", *(step for part in parts("crash_scenarios") for step in part.BEGINS))
"""The steps that begin a chat: by a client's request, or by what plug-ins have."""

SAID: Final = "What is it?"
"""What `World.post` asks."""

NEVER_STRUCK: Final = "the fault never struck"

WRITING: Final = frozenset({NOTE.tool, "kit_write"})
"""The tools with side effects."""

FROM_OUTSIDE: Final = ("cancel", "abort meanwhile", "sweep meanwhile")
"""Steps started from outside the chat: the chat goes on while they are held."""


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario and what goes wrong in it."""

    scenario: Scenario
    fault: Fault
    meanwhile: str = ""

    @property
    def kind(self) -> str:
        """The row of the printed matrix."""
        if self.meanwhile:
            return f"held, meanwhile {self.meanwhile}"
        return f"{self.fault.kind}, every time" if self.fault.always else self.fault.kind

    def __str__(self) -> str:
        return (
            f"[{self.scenario.name}] {self.fault}{f', meanwhile {self.meanwhile}' if self.meanwhile else ''}"
        )


def record(scenario: Scenario, make: Callable[..., World] = World) -> World:
    """A run without a fault, with its outside calls; checks that it ends as expected."""
    world = make(scenario)
    world.run()
    wrong = judge(world, Case(scenario, Fault(Site("", "", "", ""), "nothing")))
    assert not wrong, f"{scenario.name}: {wrong}"
    return world


def cases(scenario: Scenario, make: Callable[..., World] = World) -> Iterator[Case]:
    """Every case of a scenario."""
    world = record(scenario, make)
    sites = tuple(world.recorded.sites)
    for site in sites:
        for kind in kinds_at(site):
            yield Case(scenario, Fault(site, kind))
        if not site.step.startswith("sweep"):  # only the next sweep comes after a sweep
            yield Case(scenario, Fault(site, "crash before", always=True))
        for meanwhile in world.beside:
            if not _asks_twice(scenario, site.step, meanwhile) and not _outlives(site.step, meanwhile):
                yield Case(scenario, Fault(site, "held"), meanwhile)
        for meanwhile in ("a step", "the rest") if site.step in FROM_OUTSIDE else ():
            yield Case(scenario, Fault(site, "held"), meanwhile)
    for step in dict.fromkeys(site.step for site in sites):
        if not _asks_twice(scenario, step, "retry"):
            yield Case(scenario, Fault(Site(step, "", "", ""), "delivered twice"))


def _outlives(step: str, meanwhile: str) -> bool:
    """Whether a decision would be held for a quarter of an hour: its request ends after 29 seconds."""
    return step.startswith("decide") and meanwhile == "deadline"


def _asks_twice(scenario: Scenario, step: str, meanwhile: str) -> bool:
    """A request that is repeated without a key is a second request."""
    return step.startswith("start") and not scenario.keyed and meanwhile.startswith("retry")


def all_cases() -> list[Case]:
    """The whole matrix, in a fixed order."""
    return [case for scenario in SCENARIOS for case in cases(scenario)]


def run(case: Case, make: Callable[..., World] = World) -> list[str]:
    """Run a case. Returns what is wrong afterwards; empty if it recovered."""
    world = make(case.scenario, case.fault, case.meanwhile)
    world.run()
    wrong = judge(world, case)
    if not world.recorded.struck and case.fault.kind != "nothing":
        wrong.append(NEVER_STRUCK)
    return wrong


def occurred(case: Case, wrong: list[str]) -> bool:
    """False if this run made the call less often than the recorded one, where timing decides how often it is made
    (batches of deltas, parallel requests): such a case proves nothing.
    """
    return wrong != [NEVER_STRUCK] or case.fault.site.nth == 1


def judge(world: World, case: Case) -> list[str]:
    """What is wrong after a run, and after one more query in the same conversation."""
    if world.erased:
        return [*erasure_faults(world.look(), world.user, SAID), *world.complaints]
    chats = world.chats()
    stores = world.look()
    wrong = [fault for chat in chats for fault in chat_faults(stores, chat)]
    wrong += account_faults(stores, world.user, chats)
    wrong += _ends(case, world, chats)
    wrong += _summaries(case, stores, chats)
    wrong += _repeats(world, chats)
    wrong += _of_plugins(world, chats)
    wrong += _titles(world, chats)
    wrong += upload_faults(stores, world.user, [named.upload_id for named in world.uploads], chats)
    following = world.ask_again()
    wrong += [f"next query: {fault}" for fault in chat_faults(stores, following)]
    if (following.status, following.stop) not in (("done", "complete"), ("done", "insufficient_credits")):
        wrong.append(f"the next query ended {following.status}, {following.stop}")
    wrong += [f"after the next query: {fault}" for fault in account_faults(stores, world.user, world.chats())]
    world.note_tracks()
    wrong += digest_faults(stores, following)
    wrong += index_faults(stores, following)
    # a window leaves out what got no answer (docs/profiles.md), and what was declined leaves every past
    keeps_prefix = case.scenario.profile != "courses" and not case.scenario.declines
    broken = prefix_faults(world.starts) if keeps_prefix else ()
    return [*wrong, *broken, *world.complaints]


def _of_plugins(world: World, chats: list[Chat]) -> Iterator[str]:
    """Faults in what was told, and in what has begun without a client."""
    if world.listener:
        yield from world.listener.faults(chats, (SAID, ANSWER))
    if world.beginning:
        yield from world.beginning.faults(chats)


def _titles(world: World, chats: list[Chat]) -> Iterator[str]:
    """The user's title stays, else the model's once its call is on record, else the beginning of the query."""
    stores = world.look()
    for chat in chats if world.scenario.titled else ():
        conversation = stores.conversations.find(world.user, chat.conversation_id)
        called = any(other.titling for other in chats)
        wanted = RENAMED if world.renamed else TITLE if called else SAID
        if conversation and not conversation.title.startswith(wanted):
            yield f"its title is {conversation.title!r}, not {wanted!r}"


def _ends(case: Case, world: World, chats: list[Chat]) -> Iterator[str]:
    """Faults in how the chat ended, where only one end is right."""
    if not chats and case.fault.site.step not in BEGINNINGS:
        yield "no chat"
    # The same key starts a second chat if the client was told that the first could not be started.
    unavailable = world.responses.count(503)
    failed = sum(chat.status == "failed" for chat in chats)
    if len(chats) - min(unavailable, failed) > (2 if case.scenario.follow_up else 1):
        yield f"{len(chats)} chats"
    if case.scenario.keyed and not case.fault.always and 202 not in world.responses:
        yield f"the client was answered {world.responses}"
    for chat in chats:
        if chat.status not in _allowed(case):
            yield f"it ended {chat.status}, not {_allowed(case)}"
        yield from _price(case, world.look(), chat)


def _allowed(case: Case) -> set[str]:
    allowed = {case.scenario.status}
    if (
        case.fault.always
        or case.meanwhile in ("abort", "deadline")
        or case.fault.site.step.startswith(BEGINNINGS)
    ):
        allowed.add("failed")
    if case.meanwhile == "cancel":
        allowed.add("cancelled")
    is_stopped = case.scenario.stopped_after or case.scenario.decided == "cancel"
    if is_stopped and (case.fault.always or case.meanwhile):
        # A request from outside that is too late, or given up, changes nothing.
        allowed.add("done")
    return allowed


def _price(case: Case, stores: Stores, chat: Chat) -> Iterator[str]:
    """The invariants price what was begun; this is the price of the whole scenario, but for calls that a fault has kept
    from ever beginning."""
    scenario = case.scenario
    wanted = scenario.stop, scenario.charged
    starts_late = case.fault.site.step.startswith("start") and case.meanwhile == "deadline"
    if chat.stop == "timeout" != scenario.stop and starts_late:
        # A follow-up whose admission is held past its deadline begins with its last call, which may use no tools.
        wanted = "timeout", 5
    if scenario.max_cost and case.fault.site.step == "turn 1" and chat.turn == 1:
        # A reply was lost, and what it has cost reaches the limit: the next attempt may use no tools.
        wanted = "max_cost", 5
    if scenario.decided == "cancel":  # its pause ends in time, without the calls
        wanted = "complete", scenario.charged
    if scenario.stopped_after and not scenario.rounds:
        wanted = "complete", 5
    elif scenario.stopped_after:
        # The next call of a chat that goes on past its deadline is the last one.
        wanted = ("timeout", 18) if scenario.stopped_by == "deadline" else ("complete", 20)
    if (
        (scenario.asks or scenario.tools or scenario.name == "a question")
        and case.fault.site.step.startswith("decide")
        and case.fault.always
    ):
        return  # no decision got through: the invariants price what ran
    records = stores.history.query_records(chat.user, chat.conversation_id, chat.query, texts=())
    free = price_of_free(turns_of(stores, chat), never_ran(records))
    brought = any(record.call and record.call.status == "done" for record in records)
    if scenario.stop == "refusal" and scenario.rounds and not brought:
        # No result, and none of its words: nothing is declined, and the invariants price what ran.
        wanted = "complete", chat.credits_used + free
    if free and not case.fault.always:
        yield f"{free} credits are free, since a call never began"
    if chat.status == "done" and (chat.stop, chat.credits_used + free) != wanted:
        yield f"done, {chat.stop}, for {chat.credits_used} credits"


def _summaries(case: Case, stores: Stores, chats: list[Chat]) -> Iterator[str]:
    """Where summaries are called for, one is an extract only if the step never finished, or a follow-up came first."""
    if case.scenario.follow_up or case.scenario.profile != CALLING:
        return
    cut_off = case.fault.always or case.meanwhile in ("abort", "deadline") or case.scenario.vanishes_after
    if cut_off or case.scenario.stopped_by != "cancel" or case.fault.site.step == "summarise":
        return
    for chat in chats:
        track = stores.history.track(chat.user, chat.conversation_id, chat.query)
        if chat.stop in ("context_window", "refusal"):  # our own short texts need no summary
            continue
        if chat.status == "done" and track and not track.blocks[-1].content.startswith("About"):
            yield f"its summary is an extract: {track.blocks[-1].content[:60]}"


def _repeats(world: World, chats: list[Chat]) -> Iterator[str]:
    """Nothing is repeated once its outcome is recorded; tools with side effects run once; a repeated turn sends the
    same request.
    """
    if len(chats) == 1:
        yield from _said_otherwise(world)
    for call in world.model_calls:
        if call.recorded and not call.late:
            yield f"turn {call.turn} was on record, and the model was called again"
    for call_id, recorded in world.tool_runs:
        if recorded:
            yield f"{call_id} was on record, and its tool ran again"
    runs = Counter(call_id for call_id, _ in world.tool_runs)
    begun = {call_id for chat in chats for call_id, began in world.look().chats.marks(chat).items() if began}
    for call_id, tool in _tools(world, chats):
        if tool in WRITING and runs[call_id] and call_id not in begun:
            yield f"{call_id} had an effect, and no record that it began"
        if tool in WRITING and runs[call_id] > 1:
            yield f"{call_id} changes the world and ran {runs[call_id]} times"
        # A lost answer from our own tables is no reason to skip a tool.
        own = world.recorded.fault and world.recorded.fault.kind in (
            "sent twice",
            "500 after the commit",
            "conflict",
        )
        if own and tool in WRITING and not runs[call_id] and all(chat.status == "done" for chat in chats):
            yield f"{call_id} never ran"


def _said_otherwise(world: World) -> Iterator[str]:
    said: dict[int, set[str]] = {}
    for call in world.model_calls:
        if call.messages:
            said.setdefault(call.turn, set()).add(call.messages)
    for turn, messages in said.items():
        if len(messages) > 1:
            yield f"turn {turn} was asked in {len(messages)} ways"


def _tools(world: World, chats: list[Chat]) -> Iterator[tuple[str, str]]:
    stores = world.look()
    for chat in chats:
        for turn in turns_of(stores, chat):
            yield from ((call.id, call.tool) for call in turn.calls if not call.refused)


def table(outcomes: Iterable[tuple[Case, list[str]]]) -> str:
    """The printed matrix: a row for every kind of fault, a column for every service."""
    ran: Counter[tuple[str, str]] = Counter()
    well: Counter[tuple[str, str]] = Counter()
    for case, wrong in outcomes:
        for column in (case.fault.site.service or "step", "all"):
            for row in (case.kind, "all"):
                ran[row, column] += 1
                well[row, column] += not wrong
    rows, columns = (
        list(dict.fromkeys(row for row, _ in ran)),
        list(dict.fromkeys(column for _, column in ran)),
    )
    rows, columns = (
        [*(row for row in rows if row != "all"), "all"],
        [*(c for c in columns if c != "all"), "all"],
    )
    width = max(len(row) for row in rows)
    lines = [f"{'recovered/cases':{width}}" + "".join(f"{column:>16}" for column in columns)]
    for row in rows:
        cells = [f"{well[row, column]}/{ran[row, column]}" if ran[row, column] else "–" for column in columns]
        lines.append(f"{row:{width}}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)
