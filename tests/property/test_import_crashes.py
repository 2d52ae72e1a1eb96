"""A fault at any outside call of an admission that imports a history: it is admitted whole, or nothing is left."""

from __future__ import annotations

import pytest
from dualtrack.chat.delete_conversation import WRITERS_SECONDS

from tests.drivers.crash_matrix import SCENARIOS
from tests.drivers.crash_world import IMPORTED, USER, Scenario, World
from tests.drivers.faults import Fault, Process, kinds_at

START = "start"


def left_without_a_conversation(world: World) -> list[str]:
    """Items and objects of conversations that do not exist, once the sweep has had its time."""
    for _ in range(WRITERS_SECONDS // 300 + 2):
        world.clock.now += 300
        world.look_at_deletions(Process(world.quiet, "sweep"))
    table = world.aws.table("history")
    living = {sk.removeprefix("CONV#") for _, sk in table if sk.startswith("CONV#")}
    owned = [pk.split("#")[2] for pk, _ in table if pk.startswith(f"CONV#{USER}#")]
    owned += [key.split("/")[1] for key in world.aws.objects]
    return [name for name in {*owned, *(sk for pk, sk in table if pk == "DELETIONS")} if name not in living]


@pytest.mark.parametrize(
    "scenario", [scenario for scenario in SCENARIOS if scenario.imports], ids=lambda each: each.name
)
def test_an_import_is_admitted_whole_or_leaves_nothing(scenario: Scenario) -> None:
    quiet = World(scenario)
    quiet.post(conversation_id=quiet.conversation_id)
    sites = [site for site in quiet.trace.sites if site.step == START]
    assert {"batch_write_item", "transact_write_items"} <= {site.operation for site in sites}
    assert IMPORTED in str(quiet.aws.table("history"))
    broken = []
    for fault in [
        *(Fault(site, kind) for site in sites for kind in kinds_at(site)),
        *(Fault(site, "crash before", always=True) for site in sites),
    ]:
        world = World(scenario, fault)
        world.post(conversation_id=world.conversation_id)
        world.release()
        if left := left_without_a_conversation(world):
            broken.append(f"{fault}: {left}")
        for chat in world.chats():
            stored = (
                world.look()
                .history.across(chat.ancestry)
                .records(USER, chat.conversation_id, ["q1", f"q{chat.query - 1}-r"])
            )
            if len(stored) < (1 if scenario.earlier else 2):
                broken.append(f"{fault}: admitted without its past")
        # one that could not be started has failed, and its client tries again
        if len(alive := [chat for chat in world.chats() if chat.status != "failed"]) > 1:
            broken.append(f"{fault}: {len(alive)} chats")
    assert len(sites) > 5
    assert broken == []
