"""What a release stores of collections, and what reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.corpora.owned import owned_in
from dualtrack.plugins.knowledge.documents import Chunk
from dualtrack.plugins.knowledge.packed import pack, unpack
from dualtrack.storage.owned_corpora import OwnedCorpus

from tests.drivers.crash_world import USER

if TYPE_CHECKING:
    from dualtrack.storage.stores import Stores

    from tests.drivers.crash_world import World

COLLECTION: Final = "col_00000000000000000000000001"
JOB: Final = "jb_00000000000000000000000001"


def store(world: World) -> None:
    """A collection, and a document that a job has read."""
    stores = world.look()
    owned = OwnedCorpus(COLLECTION, USER, "documents", "Papers", int(world.clock()), "All of them")
    owned_in(stores).create(owned, 20)
    packed = pack("Handbook", "pdf", [Chunk("Everybody has 30 days.", ("Leave",), 3)])
    stores.corpora.write_part(COLLECTION, JOB, "0001/document", packed)


def read(stores: Stores) -> None:
    """Those of the moments' user, and what was read of their documents."""
    for owned in owned_in(stores).every(USER):
        unpack(stores.corpora.part(owned.corpus, JOB, "0001/document"))
