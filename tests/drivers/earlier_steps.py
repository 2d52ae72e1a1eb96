"""An earlier release's steps, one at a time, in a process of its own: run as a script, with that release's sources.

The parent (`tests.drivers.mixed_releases`) writes a pickled `(account, now, scenario, name, arguments)` behind its
length and reads `(account, now, outcome, error)`; an account is `(tables, objects, executions)`, a scenario what it has
of its own, with the names of its tool calls: plain values only, so that neither side needs the other's classes.
Nothing here may import what only today's release has.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import IO, Any


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Serve until the parent closes the pipe."""
    # the earlier release's, by PYTHONPATH
    theirs, clock = import_module("tests.drivers.crash_world"), import_module("tests.drivers.world").FakeClock
    while frame := read(source):
        account, now, scenario, name, arguments = frame
        rounds = tuple(tuple(getattr(theirs, asked) for asked in turn) for turn in scenario["rounds"])
        scenario = theirs.Scenario("an earlier release", **{**scenario, "rounds": rounds}, always_asks=True)
        world = theirs.World(scenario, clock=clock(now))
        _put(world.aws, account)
        outcome, error = _run(world, name, arguments)
        write(sink, (_taken(world.aws), world.clock.now, outcome, error))


def _run(world: Any, name: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    from dualtrack.requests import ChatRef

    if "ref" in arguments:
        known = ChatRef.__dataclass_fields__
        ref = {key: value for key, value in arguments["ref"].items() if key in known}
        arguments = {**arguments, "ref": ChatRef(**ref)}
    try:
        return _plain(getattr(world, name)(**arguments, process=world.process(name))), ""
    except Exception as error:  # noqa: BLE001 - the function failed, and the workflow retries it
        return None, repr(error)


def _plain(outcome: Any) -> Any:
    """What a workflow or a client sees of an outcome; none of the release's own values."""
    if isinstance(outcome, Mapping):
        return {key: _plain(value) for key, value in outcome.items()}
    if isinstance(outcome, (list, tuple)):
        return [_plain(value) for value in outcome]
    return outcome if isinstance(outcome, (str, int, float)) else None


def _put(aws: Any, account: tuple[Any, Any, Any]) -> None:
    tables, objects, executions = account
    aws.tables, aws.objects, aws.executions = {}, dict(objects), dict(executions)
    for name, items in tables.items():
        table = aws.table(name)
        for key, item in items.items():
            table[key] = item


def _taken(aws: Any) -> tuple[Any, Any, Any]:
    tables = {name: dict(table) for name, table in aws.tables.items()}
    return tables, dict(aws.objects), dict(aws.executions)


def read(source: IO[bytes]) -> Any:
    """The next frame; None after the last."""
    size = source.read(8)
    return pickle.loads(source.read(int.from_bytes(size))) if size else None


def write(sink: IO[bytes], frame: Any) -> None:
    data = pickle.dumps(frame)
    sink.write(len(data).to_bytes(8) + data)
    sink.flush()


if __name__ == "__main__":
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    serve(sys.stdin.buffer, out)
