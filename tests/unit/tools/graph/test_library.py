"""The version on a function instance's disk: fetched once, replaced when another is published."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from dualtrack.codec import dump
from dualtrack.errors import Gone
from dualtrack.storage.corpora import PublishedVersion
from dualtrack.tools.graph.engine import NoGraph
from dualtrack.tools.graph.library import CHECKED_EVERY, CORPUS, DATABASE, GraphLibrary
from dualtrack.tools.graph.schema import NodeLabel, Property, RelationshipType, StoredSchema

from tests.drivers.corpus_world import CorpusWorld
from tests.drivers.graph_database import ASSETS, make_database
from tests.drivers.world import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = StoredSchema(
    (NodeLabel("Asset", (Property("size", "INT64"),), ASSETS), NodeLabel("Location", (), 2)),
    (RelationshipType("LOCATED_IN", (("Asset", "Location"), ("Location", "Location")), (), 7),),
)


class World:
    """A store with published versions, and a library that reads it."""

    def __init__(self, folder: Path) -> None:
        self.store = CorpusWorld(corpus=CORPUS).stores().corpora
        self.clock = FakeClock()
        self.folder = folder / "graph"
        self.library = GraphLibrary(self.store, logging.getLogger("graph"), self.folder, self.clock)
        self._database = make_database(folder / "made.lbug")

    def publish(self, version: str, base: str | None, *, whole: bool = True) -> None:
        self.store.write_schema(CORPUS, version, dump(SCHEMA).encode())
        if whole:
            self.store.write_file(CORPUS, version, DATABASE, self._database)
        self.store.publish(CORPUS, PublishedVersion(version, "", {}, 1), base)

    def later(self) -> None:
        self.clock.now += CHECKED_EVERY

    def on_disk(self) -> list[str]:
        """The versions in this process's folders."""
        own = f"{os.getpid()}-"
        return sorted(path.name.removeprefix(own) for path in self.folder.glob(f"{own}*"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def count(world: World) -> int:
    ((number,),) = world.library.needs().engine.read("MATCH (a:Asset) RETURN count(a)", {}, 1).rows
    assert isinstance(number, int)
    return number


def test_before_a_graph_is_loaded_there_is_none(world: World) -> None:
    needs = world.library.needs()
    assert needs.schema == StoredSchema()
    with pytest.raises(NoGraph):
        needs.engine.read("RETURN 1", {}, 1)


def test_a_version_is_fetched_once_and_read(world: World) -> None:
    world.publish("v1", None)
    assert count(world) == ASSETS
    first = world.library.needs()
    assert first.schema == SCHEMA
    world.later()
    assert world.library.needs() is first
    assert world.on_disk() == ["v1"]


def test_the_layers_of_the_sandbox_are_logged_once_for_a_version(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "graph")
    world.publish("v1", None)
    for _ in range(2):
        world.library.needs().engine.read_foreign("RETURN 1", {}, 1)
    (record,) = [vars(record) for record in caplog.records if record.msg == "graph engine confined"]
    assert {*record["layers"], *record["refused"]} == {"landlock", "limits", "seccomp"}
    assert "limits" in record["layers"]
    assert all(record["refused"].values())


def test_another_version_takes_its_place_and_the_former_is_removed(world: World) -> None:
    world.publish("v1", None)
    assert count(world) == ASSETS
    world.publish("v2", "v1")
    assert world.on_disk() == ["v1"]  # checked again after a few seconds
    world.later()
    assert count(world) == ASSETS
    assert world.on_disk() == ["v2"]


def test_if_a_version_cannot_be_fetched_the_former_stays_in_use(world: World) -> None:
    world.publish("v1", None)
    assert count(world) == ASSETS
    world.publish("v2", "v1", whole=False)
    world.later()
    assert count(world) == ASSETS
    assert world.on_disk() == ["v1"]
    world.publish("v3", "v2")
    world.later()
    assert count(world) == ASSETS
    assert world.on_disk() == ["v3"]


def test_without_a_former_version_it_is_an_error_and_retried(world: World) -> None:
    world.publish("v1", None, whole=False)
    for _ in range(2):
        with pytest.raises(Gone):
            world.library.needs()
    world.publish("v2", "v1")
    assert count(world) == ASSETS
    assert world.on_disk() == ["v2"]


def test_versions_of_dead_processes_are_removed_and_others_kept(world: World) -> None:
    """Instances on the emulator share a disk, and leftovers of dead processes would fill Lambda's."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    theirs, left = (world.folder / f"{process}-v1" for process in (os.getppid(), ended.pid))
    for folder in (theirs, left):
        folder.mkdir(parents=True)
        (folder / "graph.lbug").write_text("half of it")
    world.publish("v1", None)
    assert count(world) == ASSETS
    assert (theirs / "graph.lbug").read_text() == "half of it"
    assert not left.exists()
