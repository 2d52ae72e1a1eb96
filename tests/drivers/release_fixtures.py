"""Accounts of a release in the middle of chats: fixtures that later releases must be able to finish.

``uv run --group test python -m tests.drivers.release_fixtures`` writes those of the version that is being made, into
``tests/fixtures/VERSION``; a version's folder is never written again once it has its tag (docs/faults.md).
"""

from __future__ import annotations

import base64
import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack import __version__

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.drivers.crash_world import DOCUMENTATION, NOTE, READ, UNKNOWN, Scenario, World, ref_of
from tests.drivers.documents import ROOT
from tests.drivers.faults import Died, Fault, Process, Site
from tests.drivers.memory_aws import MemoryAws
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIXTURES: Final = ROOT / "tests" / "fixtures"
FOLDER: Final = FIXTURES / __version__
"""Of the version that is being made."""

ROUNDS: Final = ((DOCUMENTATION, NOTE, UNKNOWN), (READ,))
CHAT: Final = Scenario("a chat of this release", rounds=ROUNDS, charged=20, always_asks=True)


@dataclass(frozen=True, slots=True)
class Moment:
    """A running chat: the account, and the state that the workflow is about to enter.

    ``state``: Turn, RunTools or Summarise, with the last recorded ``turn`` and the ``calls`` to run, as in the state of
    the release's execution.
    """

    name: str
    aws: MemoryAws
    now: float
    state: str
    turn: int
    calls: tuple[str, ...] = ()

    def world(self) -> World:
        """A world that continues from here."""
        world = World(CHAT, clock=FakeClock(self.now))
        world.aws.tables, world.aws.objects = self.aws.tables, self.aws.objects
        world.aws.executions = self.aws.executions
        return world


def moments() -> Iterator[Moment]:
    """Moments with every kind of item that a chat has between two states."""
    yield _moment("before the first turn", _posted(), "Turn", 0)

    world = _posted()
    calls = _turn(world, 0)
    yield _moment("tools asked for", world, "RunTools", 1, calls)

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

    world = _posted(result="0123456789abcdef, not compressible enough. " * 400)
    _run_tools(world, 1, _turn(world, 0))
    _run_tools(world, 2, _turn(world, 1))
    yield _moment("a long result", world, "Turn", 2)

    world = _posted()
    _run_tools(world, 1, _turn(world, 0))
    _run_tools(world, 2, _turn(world, 1))
    _turn(world, 2)
    yield _moment("answered, not summed up", world, "Summarise", 3)


def second_query() -> Moment:
    """The second query of a conversation, its view pinned and its first turn recorded."""
    world = _posted()
    world.machine(ref_of(world.chats()[0]))
    world.post("And now?", world.chats()[0].conversation_id)
    calls = _turn(world, 0)
    return _moment("a second query", world, "RunTools", 1, calls)


def _posted(fault: Fault | None = None, **changes: Any) -> World:
    world = World(replace(CHAT, **changes), fault)
    world.post()
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


def _moment(name: str, world: World, state: str, turn: int, calls: tuple[str, ...] = ()) -> Moment:
    return Moment(name, world.aws, world.clock.now, state, turn, calls)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def dump(moment: Moment) -> str:
    """A moment as JSON: items in DynamoDB's own form, binaries in base64."""
    tables = {
        name: [_plain(item) for item in table.values()] for name, table in sorted(moment.aws.tables.items())
    }
    objects = {key: base64.b64encode(data).decode() for key, data in sorted(moment.aws.objects.items())}
    about = {"name": moment.name, "now": moment.now, "state": moment.state, "turn": moment.turn}
    body = {
        **about,
        "calls": moment.calls,
        "executions": moment.aws.executions,
        "objects": objects,
        "tables": tables,
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def load(path: Path) -> Moment:
    """A moment from its file."""
    body = json.loads(path.read_text(encoding="utf-8"))
    aws = MemoryAws(executions=body["executions"])
    aws.objects = {key: base64.b64decode(data) for key, data in body["objects"].items()}
    for name, items in body["tables"].items():
        for item in map(_wire, items):
            aws.table(name)[item["pk"]["S"], item["sk"]["S"]] = item
    return Moment(body["name"], aws, body["now"], body["state"], body["turn"], tuple(body["calls"]))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _wire(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: base64.b64decode(part) if key == "B" else _wire(part) for key, part in value.items()}
    return [_wire(part) for part in value] if isinstance(value, list) else value


def main() -> None:
    """Write them in place of what is there."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for moment in (*moments(), second_query()):
        path = FOLDER / f"{moment.name.replace(',', '').replace(' ', '-')}.json"
        path.write_text(dump(moment), encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
