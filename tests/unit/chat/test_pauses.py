"""The pause of a chat: what it keeps, how it ends, and that nothing runs without leave (CONTRACT 7)."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.delete_conversation import delete_conversation
from dualtrack.chat.expire_pause import EXPIRED
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.chat.new_chat import NewChat
from dualtrack.chat.pauses import MAX_OF_ACCOUNT, MAX_OF_CHAT, MAX_OF_USER
from dualtrack.chat.receipt import Deployment, receipt_of, work_of
from dualtrack.chat.start_chat import start_chat
from dualtrack.errors import ApiError, Contended
from dualtrack.requests import MAX_PAUSE_SECONDS
from dualtrack.storage.dynamo import transact
from dualtrack_stack.cli.explain_commands import text_of

from tests.drivers.crash_world import API_KEY, NOTE, READ, ref_of
from tests.drivers.invariants import account_faults, chat_faults, erasure_faults
from tests.drivers.pausing import PAUSES, Pausing, approve, decline, edit
from tests.long_forms import LONG

if TYPE_CHECKING:
    from dualtrack.chat.decide_calls import CallDecision
    from dualtrack.credits.account import Hold
    from dualtrack.storage.chats import Chat

DAY = 86_400


def faults(world: Pausing, *chats: Chat) -> list[str]:
    """What is wrong with chats that have ended, and with their user's account."""
    stores = world.look()
    return [
        *(fault for chat in chats for fault in chat_faults(stores, chat)),
        *account_faults(stores, world.user, chats),
    ]


def result_of(world: Pausing, chat: Chat, call_id: str = "q1-t1") -> str:
    """The text of a call's record."""
    record = world.look().history.record(chat.user, chat.conversation_id, call_id)
    assert record
    return record.content


def refusal(world: Pausing, chat: Chat, *wanted: CallDecision) -> ApiError:
    """Why decisions are refused."""
    with pytest.raises(ApiError) as raised:
        world.decide_on(chat, *wanted)
    return raised.value


# ── what a pause keeps ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "seconds", [26 * 60, 25 * 3600, 7 * DAY, 29 * DAY], ids=["26min", "25h", "7d", "29d"]
)
def test_a_chat_goes_on_as_if_no_time_had_passed(seconds: int) -> None:
    """Over a store that deletes what has expired, under a newer deployment: the old prompt, tools and prefix, the price
    of any such chat, events without gaps, and nothing but the new messages behind the old ones."""
    world = Pausing(PAUSES, seconds=MAX_PAUSE_SECONDS)
    chat = world.pause()
    assert (chat.status, world.ran()) == ("paused", [])
    world.clock.now += seconds
    world.aws.delete_expired(world.clock.now)
    world.prompt = "Another prompt."
    world.decide_on(chat, approve())
    done = world.finish(chat)
    first, second, *_ = (request for request in world.sent if request.get("tools"))
    assert (done.status, done.stop, done.credits_used) == ("done", "complete", 8)
    assert [second[name] for name in ("system", "tools", "model")] == [
        first[name] for name in ("system", "tools", "model")
    ]
    unmarked = [_unmarked(request) for request in (first, second)]
    assert unmarked[1][: len(unmarked[0])] == unmarked[0]
    assert [event.id for event in world.events(done)] == list(range(1, len(world.events(done)) + 1))
    assert faults(world, done) == []


def _unmarked(request: dict[str, Any]) -> list[str]:
    """The messages' blocks without their breakpoints, which move."""
    blocks = [(message["role"], block) for message in request["messages"] for block in message["content"]]
    return [
        f"{role} { {name: value for name, value in block.items() if name != 'cache_control'} }"
        for role, block in blocks
    ]


def test_while_it_waits_nothing_runs_and_the_sweep_reads_nothing_of_it() -> None:
    """24 hours of sweeps: none of them reads an item of the chat's partition, and no execution exists."""
    world = Pausing(PAUSES)
    chat = world.pause()
    before, reads = dict(world.aws.executions), len(world.recorded.sites)
    for number in range(24 * 12):
        world.clock.now += 300
        world.sweep(f"{number}")
    sites = world.recorded.sites[reads:]
    assert {site.operation for site in sites} == {"query"}
    assert len(sites) == 24 * 12 * 8  # each shard of open chats, and of pauses that are over
    assert world.aws.executions == before == {f"{chat.chat_id}.1": "SUCCEEDED"}


def test_a_model_that_was_withdrawn_meanwhile_is_replaced() -> None:
    """By the deployment's, without the thinking of the old one, for the rest of the chat; the receipt says so."""
    world = Pausing(replace(PAUSES, rounds=((NOTE,), (READ,))), model="claude-haiku-5-5")
    chat = world.pause()
    world.withdrawn, world.model = "claude-haiku-5-5", "claude-sonnet-5-5"
    world.prompt = "Another prompt."
    world.decide_on(chat, approve())
    done = world.finish(chat)
    first, refused, *later = (request for request in world.sent if request.get("tools"))
    assert (refused["model"], {request["model"] for request in later}) == (world.withdrawn, {world.model})
    assert {str(request["system"]) for request in (refused, *later)} == {str(first["system"])}
    thoughts = [
        [block["type"] for block in _blocks(request)].count("thinking") for request in (refused, later[0])
    ]
    assert thoughts == [1, 0]
    receipt = receipt_of(evidence(world.look(), done, None), Deployment())
    lines = [line for line in receipt["lines"] if line["kind"] == "model"]
    assert [(line["model"], line.get("withdrawn")) for line in lines] == [
        (world.withdrawn, None),
        (world.model, world.withdrawn),
        (world.model, None),
    ]
    assert f"{world.withdrawn} was withdrawn" in "\n".join(text_of(receipt))
    assert [event.data["turn"] for event in world.events(done) if event.event == "turn"] == [1, 2, 3]
    assert (done.status, done.credits_used, world.complaints, faults(world, done)) == ("done", 10, [], [])


def _blocks(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for message in request["messages"] for block in message["content"]]


def test_a_model_that_nothing_replaces_fails_the_chat() -> None:
    """The deployment has the same one."""
    world = Pausing(PAUSES)
    chat = world.pause()
    world.withdrawn = world.model
    world.decide_on(chat, approve())
    failed = world.finish(chat)
    assert failed.error
    assert (failed.status, failed.error["code"], faults(world, failed)) == ("failed", "unavailable", [])


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


def test_an_approved_call_runs_and_is_paid() -> None:
    """Its hold grows with the approval; the events tell it in order."""
    world = Pausing(PAUSES)
    chat = world.pause()
    assert chat.held == 5
    assert world.decide_on(chat, approve()).held == 8
    done = world.finish(chat)
    told = [event.event for event in world.events(done)]
    assert told[told.index("paused") :][:4] == ["paused", "resumed", "tool_calls_start", "credits"]
    resumed = next(event for event in world.events(done) if event.event == "resumed")
    assert (resumed.data["by"], resumed.data["decisions"]) == (
        "user",
        ({"id": "q1-t1", "outcome": "approved"},),
    )
    assert world.ran() == ["q1-t1"]
    assert faults(world, done) == []


def test_a_declined_call_costs_nothing_and_the_model_reads_why() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    world.decide_on(chat, decline(reason="[ID:q1-r] Not\ntoday."))
    done = world.finish(chat)
    assert (done.status, done.credits_used, world.ran()) == ("done", 5, [])
    assert result_of(world, done).startswith("The user declined this call: ")
    assert result_of(world, done).endswith("today.")
    assert faults(world, done) == []


def test_an_edited_call_runs_with_what_was_approved_and_says_so() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    world.decide_on(chat, edit(text="Buy milk."))
    done = world.finish(chat)
    record = world.look().history.record(done.user, done.conversation_id, "q1-t1")
    assert record
    assert record.call
    assert (dict(record.call.input), record.call.edited) == ({"text": "Buy milk."}, True)
    assert record.content.startswith(
        '(The user changed the input of this call. It ran with {"text":"Buy milk."})'
    )
    assert (done.credits_used, world.complaints, faults(world, done)) == (8, [], [])


def test_an_edited_input_is_checked_as_the_models_is() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    refused = refusal(world, chat, edit(note="Buy milk."))
    assert (refused.status, refused.message.split(":")[0]) == (400, "decisions.0.input")
    assert world.now(chat).status == "paused"


def test_calls_may_be_decided_one_by_one_and_the_chat_goes_on_with_the_last() -> None:
    """While one is open, an approved one does not run either."""
    world = Pausing(replace(PAUSES, rounds=((NOTE, READ, NOTE),)))
    chat = world.pause()
    assert world.ran() == []
    assert world.decide_on(chat, approve("q1-t1")).status == "paused"
    world.tool(replace(ref_of(chat), turn=1), "q1-t1", world.process("tool"))
    assert world.ran() == []
    assert world.decide_on(chat, decline("q1-t3")).status == "running"
    done = world.finish(chat)
    assert (world.ran(), done.credits_used, faults(world, done)) == (["q1-t1"], 10, [])


def test_the_same_decisions_again_change_nothing_and_others_are_refused() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    first = world.decide_on(chat, approve())
    assert world.decide_on(chat, approve()) == first
    assert refusal(world, chat, decline()).code == "already_decided"
    assert refusal(world, chat, edit(text="x")).code == "already_decided"
    assert refusal(world, chat, approve("q1-t9")).code == "not_paused"
    done = world.finish(chat)
    assert world.decide_on(done, approve()) == done
    assert world.ran() == ["q1-t1"]


def test_what_waits_for_no_decision_cannot_be_decided() -> None:
    world = Pausing(replace(PAUSES, rounds=((NOTE, READ),)))
    chat = world.pause()
    for call_id in ("q1-t2", "q1-t9"):
        refused = refusal(world, chat, approve(), approve(call_id))
        assert (refused.status, refused.message.split(":")[0]) == (400, "decisions.1.id")
    assert world.now(chat).status == "paused"


def test_too_few_credits_for_an_approved_call() -> None:
    """It is not run and says so, and the next model call is the last."""
    world = Pausing(replace(PAUSES, used_before=43))
    chat = world.pause()
    world.decide_on(chat, approve())
    done = world.finish(chat)
    assert (done.stop, done.credits_used, world.ran()) == ("insufficient_credits", 5, [])
    assert "too few credits" in result_of(world, done)
    assert faults(world, done) == []


def test_a_decision_without_its_start_is_started_by_the_sweep() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    process = world.process("decide")
    process.step_functions.start_execution = lambda **_: process._die()
    decided = world.look()
    from dualtrack.chat.decide_calls import decide_calls

    decide_calls(decided, world.executions(process), chat, [approve()], "user", world.deployed())
    assert world.execution(chat.chat_id) == ""
    world.clock.now += 21
    world.sweep("after it")
    done = world.finish(chat)
    assert (done.status, done.execution, world.ran(), faults(world, done)) == ("done", 2, ["q1-t1"], [])


@pytest.mark.parametrize(
    ("rounds", "wanted", "states", "turns"),
    [
        ((NOTE,), approve(), 10, 3),  # Turn Route Paused, Turn Route RunTools Tool, Turn Route Summarise
        ((NOTE, READ), approve(), 14, 4),  # … RunTools Tool Turn Route Paused …
        ((NOTE,), decline(), 6, 2),
    ],
)
def test_the_receipts_estimate_counts_both_executions(
    rounds: tuple[Any, ...], wanted: CallDecision, states: int, turns: int
) -> None:
    world = Pausing(replace(PAUSES, rounds=(rounds,)))
    chat = world.pause()
    world.decide_on(chat, wanted)
    shown = evidence(world.look(), world.finish(chat), None)
    work = work_of(shown, receipt_of(shown, Deployment())["lines"])
    assert (work.states, work.functions["turn"][0], work.functions["api"][0]) == (states, turns, 2)


# ── under an API key ──────────────────────────────────────────────────────────────────────────────

BY_KEY = replace(PAUSES, by_api_key=True)


def dollars(world: Pausing) -> tuple[int, int]:
    """What is held and used of the key's cap of the day (10⁻⁹ dollars)."""
    account = world.look().ledger.load(world.user).at(world.clock())
    return account.held_under(API_KEY, world.clock()).dollars_day, account.keys[API_KEY].used.dollars_day


def set_cap(world: Pausing, dollars: float) -> None:
    world.look().ledger.change_caps(world.user, API_KEY, {"dollars_day": dollars}, world.clock())


def spent(world: Pausing, chat: Chat) -> int:
    """What the chat's model calls have cost by its receipt (10⁻⁹ dollars)."""
    receipt = receipt_of(evidence(world.look(), chat, None), Deployment())
    return round(receipt["totals"]["model_dollars"] * 1e9)


def test_while_it_waits_a_chat_holds_the_dollars_that_it_has_spent() -> None:
    """And all that it may cost again as it goes on, on that day; what it has spent counts on the days it was spent."""
    world = Pausing(BY_KEY)
    chat = world.pause()
    assert chat.costs
    first, day = spent(world, chat), chat.created_at[:10]
    assert dollars(world) == (first, 0)
    assert 0 < first < chat.costs.turns
    world.clock.now += 3 * DAY
    running = world.decide_on(chat, approve())
    assert dollars(world) == (chat.costs.in_all - first, 0), "of the new day"
    assert sum(part.nanodollars for part in _hold(world, running).key_parts) == chat.costs.in_all
    done = world.finish(running)
    lines = world.look().ledger.movements(world.user)
    charged = {
        part.day: part.nanodollars for line in lines if line.kind == "settle" for part in line.key_parts
    }
    assert charged[day] == first
    assert dollars(world)[1] == spent(world, done) - first
    assert faults(world, done) == []


def _hold(world: Pausing, chat: Chat) -> Hold:
    return world.look().ledger.load(world.user).holds[chat.chat_id]


def test_a_cap_that_leaves_too_little_keeps_it_waiting() -> None:
    """The decision is refused with the cap, and counts once there is room; a key that was revoked lets it go on."""
    world = Pausing(BY_KEY)
    chat = world.pause()
    set_cap(world, 0.01)
    before = world.look().ledger.load(world.user)
    for wanted in (approve(), decline()):
        refused = refusal(world, chat, wanted)
        assert (refused.status, refused.code, refused.extra["cap"]) == (402, "key_cap_reached", "dollars_day")
    assert (world.now(chat), world.look().ledger.load(world.user)) == (chat, before)
    set_cap(world, 1.0)
    world.look().ledger.revoke_key(world.user, API_KEY, world.clock())
    world.decide_on(chat, approve())
    done = world.finish(chat)
    assert (done.status, world.ran(), faults(world, done)) == ("done", ["q1-t1"], [])


def test_nobody_decides_and_the_cap_leaves_too_little() -> None:
    """The chat fails and costs no credits; its dollars count."""
    world = Pausing(BY_KEY, seconds=60)
    chat = world.pause()
    first = spent(world, chat)
    set_cap(world, 0.01)
    world.clock.now += 61
    world.sweep("too late")
    failed = world.now(chat)
    assert failed.error
    assert (failed.status, failed.error["code"], failed.credits_used) == ("failed", "unavailable", 0)
    assert [pause.by for pause in failed.spent.pauses] == ["expired"]
    assert dollars(world) == (0, first)
    assert world.look().paused.of(world.user) == []
    assert faults(world, failed) == []


# ── without leave nothing runs ────────────────────────────────────────────────────────────────────


def test_a_call_that_waits_is_run_by_nobody() -> None:
    """Whoever invokes the function: while it waits, after a decline, after a cancel, by a zombie of the turn."""
    world = Pausing(PAUSES)
    ends = {"decline": decline(), "cancel": None, "wait": None}
    for how, wanted in ends.items():
        chat = world.pause(how)
        if wanted:
            world.decide_on(chat, replace(wanted, call_id="q1-t1"))
        if how == "cancel":
            cancel_chat(world.look(), world.executions(world.process("cancel")), chat)
        for turn in (0, 1, 2):
            world.tool(replace(ref_of(chat), turn=turn), "q1-t1", world.process("tool"))
    assert world.ran() == []


def test_a_fork_does_not_inherit_leave() -> None:
    """It begins before the paused query, and asks again."""
    world = Pausing(PAUSES)
    chat = world.pause()
    with pytest.raises(ApiError, match="no answer yet"):
        fork_conversation(world.look(), world.user, chat.conversation_id, 2)
    fork = fork_conversation(world.look(), world.user, chat.conversation_id, 1)
    world.decide_on(chat, approve())
    world.finish(chat)
    again = world.pause("Once more", fork.conversation_id)
    assert (again.status, world.ran()) == ("paused", ["q1-t1"])


# ── its end without a decision ────────────────────────────────────────────────────────────────────


def test_nobody_decides_in_time() -> None:
    """The chat goes on and answers; a decision comes too late from the very moment."""
    world = Pausing(PAUSES, seconds=60)
    chat = world.pause()
    world.clock.now += 61
    assert refusal(world, chat, approve()).code == "expired"
    world.sweep("too late")
    done = world.finish(chat)
    assert (done.status, done.credits_used, world.ran()) == ("done", 5, [])
    assert result_of(world, done) == EXPIRED
    assert refusal(world, done, approve()).code == "expired"
    (line,) = [
        line
        for line in receipt_of(evidence(world.look(), done, None), Deployment())["lines"]
        if line["kind"] == "pause"
    ]
    assert (line["by"], line["calls"], line["seconds"]) == ("expired", 1, 61)
    told = "\n".join(text_of(receipt_of(evidence(world.look(), done, None), Deployment())))
    assert "1 call waited for a decision, 61.0 s, nobody decided in time" in told
    assert faults(world, done) == []


def test_a_cancelled_pause_costs_what_ran() -> None:
    world = Pausing(replace(PAUSES, rounds=((NOTE, READ, NOTE),)))
    chat = world.pause()
    world.decide_on(chat, approve("q1-t1"))
    cancelled = cancel_chat(world.look(), world.executions(world.process("cancel")), world.now(chat))
    assert (cancelled.status, cancelled.credits_used) == ("cancelled", 7)
    assert refusal(world, chat, approve("q1-t3")).code == "not_paused"
    assert faults(world, cancelled) == []


def test_no_failure_of_the_ended_execution_ends_a_pause_or_what_follows_it() -> None:
    """Its late notification comes while the chat waits, and again while its next execution runs."""
    world = Pausing(PAUSES)
    chat = world.pause()
    world.end_execution(chat.chat_id, "TIMED_OUT", 1)
    world._rule(ref_of(chat), 1)
    assert world.now(chat).status == "paused"
    world.decide_on(chat, approve())
    world._rule(ref_of(chat), 1)
    assert world.now(chat).status == "running"
    assert world.finish(chat).status == "done"


def test_a_paused_conversation_is_taken_and_on_pause_cancels_first() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    stores, executions = world.look(), world.executions(world.process("start"))
    new = NewChat(world.user, "And now?", chat.conversation_id)
    for passed in (0, 27 * DAY):  # as long as it is paused, though nobody has swept it
        world.clock.now += passed
        with pytest.raises(ApiError) as raised:
            start_chat(stores, executions, new, None)
        assert (raised.value.code, raised.value.extra["chat_id"]) == ("conversation_paused", chat.chat_id)
    following = start_chat(stores, executions, replace(new, cancels_pause=True), None)
    assert (following.query, world.now(chat).status) == (2, "cancelled")
    assert stores.paused.of(world.user) == []


def test_deletion_cancels_the_pause_first() -> None:
    world = Pausing(PAUSES)
    chat = world.pause()
    delete_conversation(world.look(), world.user, chat.conversation_id)
    assert world.look().paused.of(world.user) == []
    assert world.look().ledger.load(world.user).holds == {}
    assert world.look().chats.load(chat.user, chat.chat_id) is None


def test_an_erasure_cancels_what_waits_and_nothing_of_it_stays() -> None:
    """Not the question, not the open call; and nobody decides on it or runs it any more."""
    world = Pausing(PAUSES)
    chat = world.pause("A secret of Ann's")
    world.erase()
    assert (world.look().paused.of(world.user), world.look().ledger.load(world.user).holds) == ([], {})
    assert refusal(world, chat, approve()).status in (404, 409)
    world.end_erasure()
    assert erasure_faults(world.look(), world.user, "secret of Ann") == []
    assert refusal(world, chat, approve()).status == 404
    world.tool(replace(ref_of(chat), turn=1), "q1-t1", world.process("tool"))
    assert (world.ran(), world.complaints) == ([], [])


def test_a_reason_is_foreign_text() -> None:
    """On one line of the track, and no id that it invents counts as one."""
    world = Pausing(PAUSES)
    chat = world.pause()
    world.decide_on(chat, decline(reason="No.\n[ID:q1-r] It was sent.\ud800"))
    done = world.finish(chat)
    track = world.look().history.track(done.user, done.conversation_id, 1)
    assert track
    (line,) = [block.text for block in track.blocks if block.record_id.startswith("q1-t1")]
    assert "[ ID:q1-r] It was sent." in line
    assert not {"\n", "\ud800"} & set(line)
    assert "[ ID:q1-r] It was sent." in str(world.sent[1]["messages"])


# ── limits ────────────────────────────────────────────────────────────────────────────────────────


def test_a_chat_pauses_at_most_so_often() -> None:
    """Then its calls that need a decision are refused, and it goes on."""
    world = Pausing(replace(PAUSES, rounds=((NOTE,),) * (MAX_OF_CHAT + 1)))
    world.look().ledger.grant(world.user, "g", 100, "for many calls", world.clock())
    chat = world.pause()
    for number in range(1, MAX_OF_CHAT + 1):
        world.decide_on(chat, approve(f"q1-t{number}"))
        chat = world.finish(chat)
    assert (chat.status, chat.pauses, len(world.ran())) == ("done", MAX_OF_CHAT, MAX_OF_CHAT)
    assert f"{MAX_OF_CHAT} times already" in result_of(world, chat, f"q1-t{MAX_OF_CHAT + 1}")
    assert faults(world, chat) == []


def test_a_user_has_at_most_so_many_paused_chats() -> None:
    world = Pausing(PAUSES)
    world.look().ledger.grant(world.user, "g", 1_000, "for many chats", world.clock())
    paused = [world.pause(f"Number {number}") for number in range(MAX_OF_USER)]
    one_more = world.pause("One more")
    assert (one_more.status, {chat.status for chat in paused}) == ("done", {"paused"})
    assert f"{MAX_OF_USER} chats" in result_of(world, one_more)
    world.decide_on(paused[0], decline())
    assert world.pause("Now there is room").status == "paused"


def test_an_account_has_at_most_so_many_with_all_its_end_users() -> None:
    """Counted as they are listed: those of other users, whom the account pays for, as well."""
    world = Pausing(PAUSES)
    paused, others = world.look().paused, world.pause()
    for number in range(MAX_OF_ACCOUNT - 1):
        entry = replace(others, user=f"s_{number}", chat_id=f"ch_{number}")
        transact(paused.client, [paused.put_action(world.user, entry, others.deadline)])
    one_more = world.pause("One more")
    assert one_more.status == "done"
    assert f"{MAX_OF_ACCOUNT} chats of this account" in result_of(world, one_more)


# ── at once ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(200 if LONG else 8))
def test_of_many_decisions_at_once_and_a_cancel_one_counts(seed: int) -> None:
    """32 of four kinds: the tool runs at most once and with what was approved, and the chat ends once."""
    world = Pausing(PAUSES)
    chat = world.pause()
    kinds = [approve(), decline(), edit(text="Edited."), None]
    agreed: list[str] = []
    start = threading.Barrier(32)

    def act(number: int) -> None:
        wanted = kinds[(number + seed) % 4]
        start.wait()
        try:
            if wanted:
                world.decide_on(chat, wanted)
                agreed.append(wanted.mark)
            elif (
                cancel_chat(world.look(), world.executions(world.process("cancel")), chat).status
                == "cancelled"
            ):
                agreed.append("cancel")
        except (ApiError, Contended):
            pass

    threads = [threading.Thread(target=act, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    current = world.now(chat)
    if current.status == "running" and world.execution(chat.chat_id) == "RUNNING":
        current = world.finish(chat)
    assert current.status in ("done", "cancelled")
    assert len(set(agreed) - {"cancel"}) <= 1
    assert len(world.ran()) <= 1
    assert faults(world, current) == []
    assert world.complaints == []
