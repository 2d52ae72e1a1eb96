"""Forks of forks, chats and deletions in any order, against a plain model, byte for byte (CONTRACT 4, 6).

The model of a conversation is the list of what each of its queries showed at its end; a fork's begins as a copy of the
start of its parent's.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

import pytest
from dualtrack.api.conversations import find_conversation, find_record, list_forks
from dualtrack.chat.delete_conversation import WRITERS_SECONDS, delete_conversation
from dualtrack.chat.fork_conversation import fork_conversation
from dualtrack.errors import ApiError
from dualtrack.profiles import all_profiles
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    rule,
    run_state_machine_as_test,
)

from tests.drivers import conversations
from tests.drivers.crash_world import (
    BIG,
    DOCUMENTATION,
    IMAGE,
    READ,
    SEARCH,
    TEXT_FILE,
    USER,
    Scenario,
    World,
    ref_of,
)
from tests.drivers.faults import Process
from tests.drivers.invariants import chat_faults
from tests.long_forms import LONG

EXAMPLES: Final = 50 if LONG else 8
TALK: Final = Scenario(
    "forked",
    rounds=((DOCUMENTATION, READ, SEARCH),),
    charged=19,
    result=BIG[:3_000],
    files=(TEXT_FILE, IMAGE),
    always_asks=True,
)
"""Every query has the same long result and files: deleted and kept conversations share their bodies."""

HUGE: Final = replace(TALK, result=BIG[:100_000])
"""The same with results in S3."""


class Talk(World):
    """Many conversations at once: a query number does not identify the conversation of a call."""

    def _note_start(self, query: int, body: dict[str, Any]) -> None:
        """Skip the check: the past differs between conversations."""


def shown(world: World, conversation_id: str) -> list[str]:
    """What each query shows in both tracks."""
    return conversations.shown(world.look(), USER, conversation_id)


class Forks(RuleBasedStateMachine):
    """Conversations by id, each with what its queries showed."""

    conversations = Bundle("conversations")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, list[str]] = {}
        self.parents: dict[str, str] = {}

    @initialize(huge=st.booleans())
    def begin(self, huge: bool) -> None:
        self.world = Talk(HUGE if huge else TALK)
        self.words = random.Random(3)
        self.world.look().ledger.grant(USER, "g", 100_000, "test", self.world.clock())

    def ask(self, conversation_id: str) -> str:
        """Run a query, in a new conversation if there is no id; returns the conversation."""
        world, known = self.world, {chat.chat_id for chat in self.world.chats()}
        text = f"{self.words.random()} " + self.words.choice(("short", "long " * 500))
        world.post(text, conversation_id)
        (chat,) = [chat for chat in world.chats() if chat.chat_id not in known]
        world.machine(ref_of(chat))
        (chat,) = [chat for chat in world.chats() if chat.chat_id not in known]
        assert (chat.status, chat_faults(world.look(), chat)) == ("done", [])
        return chat.conversation_id

    @rule(target=conversations)
    def new(self) -> str:
        own = self.ask("")
        self.model[own] = shown(self.world, own)
        return own

    @rule(own=conversations)
    def go_on(self, own: str) -> None:
        self.ask(own)
        now = shown(self.world, own)
        assert now[:-1] == self.model[own]
        self.model[own] = now

    @rule(target=conversations, parent=conversations, share=st.floats(0, 1))
    def fork(self, parent: str, share: float) -> str:
        through = round(share * len(self.model[parent]))
        own = fork_conversation(self.world.look(), USER, parent, through + 1).conversation_id
        self.model[own] = self.model[parent][:through]
        self.parents[own] = parent
        return own

    @rule(own=consumes(conversations), in_time=st.booleans())
    def delete(self, own: str, in_time: bool) -> None:
        """Delete by the request, or only hide and leave the rest to the sweep."""
        delete_conversation(self.world.look(), USER, own, lambda: in_time)
        del self.model[own]
        with pytest.raises(ApiError, match="no such conversation"):
            find_conversation(self.world.look(), USER, own)

    @rule(seconds=st.sampled_from([300, WRITERS_SECONDS + 1]))
    def sweep(self, seconds: int) -> None:
        self.pass_by(seconds)

    def pass_by(self, seconds: int) -> None:
        """Run the sweep after this many seconds."""
        self.world.clock.now += seconds
        self.world.look_at_deletions(Process(self.world.quiet, "sweep"))

    @rule(own=conversations)
    def read_beyond(self, own: str) -> None:
        """Records of queries beyond the conversation's last are not found."""
        stores = self.world.look()
        conversation, last = find_conversation(stores, USER, own), len(self.model[own])
        for tail in ("", "-r", "-t1", "-f1", "-r-sum", "-a1"):
            with pytest.raises(ApiError, match="no such record"):
                find_record(stores, conversation, f"q{last + 1}{tail}", 0)

    def check(self) -> None:
        """Check that every conversation shows what the model has, and lists its forks."""
        for own, queries in self.model.items():
            assert shown(self.world, own) == queries
            listed = list_forks(self.world.look(), USER, own, "", 100).items
            expected = {fork for fork, parent in self.parents.items() if parent == own and fork in self.model}
            assert {listed_fork["conversation_id"] for listed_fork in listed} == expected
        assert self.world.complaints == []

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.check()
        for own in self.words.sample(list(self.model), len(self.model)):
            delete_conversation(self.world.look(), USER, own)
            del self.model[own]
            self.check()
            self.pass_by(WRITERS_SECONDS + 1)  # run no scheduled sweep that would do another's work
            self.pass_by(WRITERS_SECONDS + 1)
        for _ in range(2):
            self.pass_by(WRITERS_SECONDS + 1)
        leftovers = [
            (name, key)
            for name, table in self.world.aws.tables.items()
            for key in table
            if name in ("history", "chats") and not key[1].startswith(("IDEM#", "RATE#"))
        ]
        assert leftovers == []
        assert dict(self.world.aws.objects) == {}


@pytest.mark.parametrize("track_tokens", [24_000, 700])
def test_every_conversation_matches_a_plain_model(track_tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a history that fits the budget, and with one that is folded every few queries."""
    changed = replace(all_profiles()["assistant"], track_tokens=track_tokens)
    monkeypatch.setitem(all_profiles(), "assistant", changed)
    run_state_machine_as_test(
        Forks,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=14,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            print_blob=True,
        ),
    )
