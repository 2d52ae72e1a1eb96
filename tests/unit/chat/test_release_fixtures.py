"""The fixtures of the releases have everything that is stored, and stay as they were at their tags."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack import codec
from dualtrack.chat.agent import AgentDeployment, agent_of
from dualtrack.corpora.courses import unpack
from dualtrack.corpora.jobs import CORPORA, GRAPH
from dualtrack.tools.courses.index import load as load_index
from dualtrack.tools.graph.schema import StoredSchema
from dualtrack.tools.mcp.catalogue import load_catalogue

from tests.drivers.corpus_world import CorpusWorld
from tests.drivers.crash_matrix import SCENARIOS, with_other_profiles
from tests.drivers.crash_world import USER, World
from tests.drivers.erasure_world import SCENARIO as ERASED
from tests.drivers.erasure_world import USER as LEAVER
from tests.drivers.erasure_world import Erased
from tests.drivers.invariants import account_faults, chat_faults, digest_faults, index_faults
from tests.drivers.memory_aws import MemoryAws, Table
from tests.drivers.outbox import noted
from tests.drivers.plugin_parts import parts
from tests.drivers.release_fixtures import FIXTURES, changed_since_its_tag, load, write
from tests.drivers.release_moments import BOATS, KEY
from tests.drivers.stored_classes import library_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dualtrack.storage.stores import Stores

    from tests.drivers.release_moments import Moment

Kind = tuple[str, str, str]
"""Table, head of the partition key, head of the sort key."""

GIT: Final = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": "test@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
WITHOUT_FIXTURE: Final = {
    "_Plan": "in a cache, of which an entry that cannot be read is none",
}


class Reading(MemoryAws):
    """An account that is only read."""

    def call(self, service: str, operation: str, request: dict[str, Any]) -> Any:
        """Perform a call that changes nothing."""
        assert operation.startswith(("get", "batch_get", "query", "list")), operation
        return super().call(service, operation, request)


@contextmanager
def values_read() -> Iterator[set[type]]:
    """The stored classes of which the codec makes a value meanwhile."""
    made: set[type] = set()

    def noting(maker: Callable[[type], codec.FieldReader]) -> Callable[[type], codec.FieldReader]:
        def make(kind: type) -> codec.FieldReader:
            read = maker(kind)

            def note(data: Any, /, **given: Any) -> Any:
                made.add(kind)
                return read(data, **given)

            return note

        return make

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_object", "_row"):
            patch.setattr(codec, name, noting(getattr(codec, name)))
        codec.reader.cache_clear()
        yield made
    codec.reader.cache_clear()


def read_all(moment: Moment) -> None:
    """Read what the account has, as the functions do."""
    world = moment.world()
    world.aws = Reading(world.aws.tables, world.aws.objects, world.aws.executions)
    world.quiet.aws = world.aws
    stores, chats = world.look(), world.chats()
    account_faults(stores, USER, chats)
    for chat in chats:
        chat_faults(stores, chat)
        stores.chats.wanted(chat)
        digest_faults(stores, chat)
        index_faults(stores, chat)
        agent_of(stores.agents, chat, AgentDeployment("another model"))
        history = stores.across(chat.ancestry).history
        for number in range(1, chat.query):
            history.track(USER, chat.conversation_id, number)
        tracks = history.tracks(USER, chat.conversation_id, chat.query - 1)
        history.whole(USER, chat.conversation_id, tracks)
    load_catalogue(stores.cache, moment.now)
    stores.requests.first(USER, KEY, moment.now)
    stores.keys.named(stores.ledger.load(USER).keys)
    noted(stores, USER)
    for part in parts("release_moments"):
        part.read(stores)
    stores.deletions.due()
    for corpus in CORPORA:
        _read_corpus(stores, corpus)


def _read_corpus(stores: Stores, corpus: str) -> None:
    published, _ = stores.corpora.published_documents(corpus)
    if published and corpus == GRAPH:
        codec.load(StoredSchema, stores.corpora.schema(corpus, published.version))
    elif published:
        load_index(stores.corpora.index(corpus, published.version))
    for job in stores.corpus_jobs.open_jobs(corpus):
        stores.corpus_jobs.files(corpus, job.job_id)
        for name in stores.corpora.part_names(corpus, job.job_id):
            if name.endswith("/document"):
                unpack(stores.corpora.part(corpus, job.job_id, name))


def test_there_is_a_value_of_every_stored_class() -> None:
    """A class without one needs a moment in which this release stores it (tests/drivers/release_moments.py)."""
    with values_read() as read:
        for path in FIXTURES.glob("*/*.json"):
            read_all(load(path))
    without = [kind.__name__ for kind in library_classes() if kind not in read]
    assert without == sorted(WITHOUT_FIXTURE)


class Noted(Table):
    """A table that notes the kinds of all items that it has ever had."""

    def __init__(self, name: str, seen: set[Kind]) -> None:
        super().__init__()
        self._name, self._seen = name, seen

    def __setitem__(self, key: tuple[str, str], item: dict[str, Any]) -> None:
        self._seen.add(_kind(self._name, key))
        super().__setitem__(key, item)


@dataclass
class Account(MemoryAws):
    """An account of such tables."""

    seen: set[Kind] = field(default_factory=set)

    def table(self, name: str) -> Table:
        """A table's items by key."""
        return self.tables.setdefault(name, Noted(name, self.seen))


def _kind(table: str, key: tuple[str, str]) -> Kind:
    pk, sk = key
    return table, pk.split("#")[0], sk.split("#")[0]


def _kinds(aws: MemoryAws) -> set[Kind]:
    return {_kind(name, key) for name, table in aws.tables.items() for key in table}


def _written() -> set[Kind]:
    """By every scenario of the crash matrix, by an erasure, and by a job."""
    account = Account()
    with with_other_profiles():
        for scenario in SCENARIOS:
            World(scenario, aws=account).run()
            account.tables.clear()
    Erased(world=World(ERASED, user=LEAVER, aws=account)).run()
    CorpusWorld(aws=account).live({"boats.txt": BOATS})
    return account.seen


def test_there_is_an_item_of_every_kind_that_is_written() -> None:
    """A kind without one needs a moment in which this release writes it (tests/drivers/release_moments.py)."""
    kept = {kind for path in FIXTURES.glob("*/*.json") for kind in _kinds(load(path).aws)}
    assert sorted(_written() - kept) == []


def test_no_release_that_is_out_has_other_fixtures_than_at_its_tag() -> None:
    """Where the repository has no tags, as in a shallow clone, there is nothing to compare with."""
    assert [file for folder in FIXTURES.glob("[0-9]*") for file in changed_since_its_tag(folder)] == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The fixtures of 2.0.0 in a repository of their own."""
    made = tmp_path / "fixtures" / "2.0.0"
    made.mkdir(parents=True)
    (made / "a-chat.json").write_text("{}")
    _git(tmp_path, "init", "-q")
    _commit(tmp_path)
    return made


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True, env=GIT)


def _commit(root: Path) -> None:
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "fixtures")


def test_fixtures_stay_from_their_tag_on(folder: Path) -> None:
    root = folder.parents[1]
    (folder / "a-chat.json").write_text('{"turn": 1}')
    assert changed_since_its_tag(folder) == []
    _commit(root)
    _git(root, "tag", "v2.0.0")
    assert changed_since_its_tag(folder) == []
    (folder / "a-chat.json").write_text('{"turn": 2}')
    (folder / "added.json").write_text("{}")
    assert changed_since_its_tag(folder) == ["a-chat.json", "added.json"]
    _commit(root)
    assert changed_since_its_tag(folder) == ["a-chat.json", "added.json"]


def test_the_fixtures_of_a_release_that_is_out_are_not_written(folder: Path) -> None:
    _git(folder, "tag", "2.0.0")
    with pytest.raises(SystemExit, match=r"2\.0\.0 is out"):
        write(folder)
    assert [path.name for path in folder.iterdir()] == ["a-chat.json"]
