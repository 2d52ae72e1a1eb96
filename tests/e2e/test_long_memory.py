"""Long conversations, the short form of `bench.long_memory`: with small budgets (CONTRACT 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.drivers.long_memory import Talk, keeps_prefix, prose, query_starts
from tests.drivers.memory_scenarios import SCENARIOS, Sizes, run
from tests.long_forms import LONG
from tests.servers.metered_model import measured
from tests.stack_fixtures import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.stack_client import Person, Root
    from tests.servers.metered_model import Call
    from tests.servers.tool_server import ToolServer

SIZES = Sizes(
    long_queries=10,
    long_query=8_000,
    ordinary=52,
    deep=6,
    wide=8,
    result=20_000,
    pictures=3,
    picture=50_000,
)
ROOM = SMALL["context_tokens"] - SMALL["max_tokens"]


@pytest.fixture
def talk(root: Root, ann: Person, model: OfflineModel, tools: ToolServer) -> Talk:
    """A conversation with the small profile."""
    root.grant(ann.id)
    return Talk(ann, model.script, tools, SMALL["name"])


@pytest.fixture
def calls(model: OfflineModel) -> Callable[[], list[Call]]:
    """The model calls since the test began."""
    begun = len(model.requests)
    return lambda: [
        replace(measured(request.body), refused=request.refused)
        for request in model.requests[begun:]
        if request.path == "/v1/messages"
    ]


@pytest.mark.parametrize(
    "name", SCENARIOS if LONG else [name for name in SCENARIOS if name != "ordinary queries"]
)
def test_every_chat_is_answered_within_its_budget_and_every_record_is_returned(
    name: str, talk: Talk, calls: Callable[[], list[Call]]
) -> None:
    outcome = run(name, talk, SIZES, calls, ROOM)
    assert outcome.wrong == ()
    if name == "ordinary queries":
        assert outcome.resent.folds >= 2


def test_a_follow_up_at_the_answer_keeps_the_prefix_and_so_does_the_query_after_it(
    talk: Talk, calls: Callable[[], list[Call]]
) -> None:
    first = talk.start("What is there?", [[prose("a", 4_000), prose("b", 4_000)]], prose("answer", 2_000))
    talk.person.until(first, lambda event: event.kind == "answer")
    second = talk.start("And then?", answer=prose("then", 2_000))
    talk.finish(first)
    talk.finish(second)
    talk.ask("Anything else?")
    start_1, start_2, start_3 = query_starts(calls(), talk.marker)
    assert keeps_prefix(start_1, start_2)
    assert keeps_prefix(start_2, start_3)
    assert talk.wrong() == []
