"""The stores, opened once per container, and which of them each kind of work may touch.

A function opens a kind of stores and loads the modules of these alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import boto3
from botocore.config import Config

from dualtrack.clock import system_clock
from dualtrack.runtime.clients import LazyClient, client_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from dualtrack.clock import Clock
    from dualtrack.memory.ancestry import Ancestry
    from dualtrack.requests import ChatRef
    from dualtrack.settings import Settings
    from dualtrack.storage.agents import AgentStore
    from dualtrack.storage.api_requests import ApiRequests
    from dualtrack.storage.bodies import BodyStore
    from dualtrack.storage.cache import CacheStore
    from dualtrack.storage.chats import Chat, ChatStore
    from dualtrack.storage.conversation_words import ConversationWords
    from dualtrack.storage.conversations import ConversationStore
    from dualtrack.storage.corpora import CorpusStore
    from dualtrack.storage.corpus_jobs import CorpusJobs
    from dualtrack.storage.deletions import Deletions
    from dualtrack.storage.digests import DigestStore
    from dualtrack.storage.event_log import EventLog
    from dualtrack.storage.forks import ForkStore
    from dualtrack.storage.history import HistoryStore
    from dualtrack.storage.kept_ledger import KeptLedger
    from dualtrack.storage.keys import KeyStore
    from dualtrack.storage.leases import Leases
    from dualtrack.storage.ledger import Ledger
    from dualtrack.storage.outbox import Outbox
    from dualtrack.storage.paused_chats import PausedChats
    from dualtrack.storage.search_index import SearchIndex
    from dualtrack.storage.uploads import UploadStore
    from dualtrack.storage.vector_indexes import VectorIndexes

_VECTORS_CONFIG: Final = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "max_attempts": 4}
)
"""If a query is not answered, the search still has enough time to rank by keywords."""


@dataclass(frozen=True, kw_only=True)
class ToolStores:
    """A tool reads its conversation and records its result; a search, and each step that ends a query, index it."""

    chats: ChatStore
    history: HistoryStore
    digests: DigestStore
    search_index: SearchIndex
    words: ConversationWords
    clock: Clock

    def across(self, ancestry: Ancestry) -> Self:
        """The stores as a conversation with this ancestry sees them (`HistoryStore.across`)."""
        return replace(
            self,
            history=self.history.across(ancestry),
            digests=self.digests.across(ancestry),
            search_index=self.search_index.across(ancestry),
        )

    def log(self, chat: Chat | ChatRef) -> EventLog:
        """The chat's event log."""
        from dualtrack.storage.chats import chat_partition  # noqa: PLC0415 - not every function has chats
        from dualtrack.storage.event_log import EventLog  # noqa: PLC0415

        chats, pk = self.chats, chat_partition(chat.user, chat.chat_id)
        return EventLog(chats.client, chats.table, pk, chat.chat_id, self.clock, chats.bodies)


@dataclass(frozen=True, kw_only=True)
class QueryStores(ToolStores):
    """A model call also needs what its chat has pinned: its agent, and the tools of MCP servers."""

    agents: AgentStore
    cache: CacheStore


@dataclass(frozen=True, kw_only=True)
class NoticeStores:
    """What has to be told, alone."""

    outbox: Outbox


@dataclass(frozen=True, kw_only=True)
class PaidStores(ToolStores, NoticeStores):
    """What a chat holds ends in the ledger, and its end is told."""

    ledger: Ledger


@dataclass(frozen=True, kw_only=True)
class SummaryStores(PaidStores):
    """Summaries and a digest are asked for as the chat's agent says, and charged to its key."""

    agents: AgentStore


@dataclass(frozen=True, kw_only=True)
class ChatStores(PaidStores):
    """A chat that ends frees its conversation and its credits."""

    conversations: ConversationStore
    paused: PausedChats


@dataclass(frozen=True, kw_only=True)
class TurnStores(QueryStores, ChatStores):
    """A turn calls the model, and an answer ends the chat's hold; a decision lets a paused chat go on, with what it has
    pinned."""


@dataclass(frozen=True, kw_only=True)
class ConversationStores(ToolStores):
    """Conversations, and what they share with their forks."""

    conversations: ConversationStore
    forks: ForkStore


@dataclass(frozen=True, kw_only=True)
class DeletionStores(ChatStores, ConversationStores):
    """A deletion ends what runs, and removes all items and objects of a conversation."""

    bodies: BodyStore
    deletions: Deletions


@dataclass(frozen=True, kw_only=True)
class AdmissionStores(DeletionStores):
    """A request is admitted once; what a refused one has written is deleted. Names of tools are looked up, and a
    service's end user is noted."""

    requests: ApiRequests
    cache: CacheStore
    keys: KeyStore


@dataclass(frozen=True, kw_only=True)
class CorpusStores:
    """The data that tools search."""

    corpora: CorpusStore
    corpus_jobs: CorpusJobs
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class ErasureStores(AdmissionStores, CorpusStores):
    """An erasure removes all that names a user."""

    kept_ledger: KeptLedger
    uploads: UploadStore


@dataclass(frozen=True, kw_only=True)
class IndexStores(CorpusStores):
    """Vectors of courses may be in an index of their own."""

    vector_indexes: VectorIndexes | None = None
    """None if they are in the corpus."""


@dataclass(frozen=True, kw_only=True)
class SearchStores(QueryStores, IndexStores):
    """A tool may search a conversation, what agents search in, and what searches of services remember."""


@dataclass(frozen=True, kw_only=True)
class SweepStores(ErasureStores, IndexStores):
    """The sweep looks after all that was left behind."""


@dataclass(frozen=True, kw_only=True)
class ApiStores(TurnStores, ErasureStores):
    """The API admits, shows and deletes; it calls no model."""

    leases: Leases


@dataclass(frozen=True, kw_only=True)
class Stores(SummaryStores, ApiStores, IndexStores):
    """Every store of a stage, over one DynamoDB client and one S3 client. No function has them all: each opens one of
    the above, and what it calls names one, or single stores (tests/infra/test_permissions.py compares)."""


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class _Place:
    """What stores are made of."""

    settings: Settings
    dynamodb: DynamoDBClient
    s3: S3Client
    clock: Clock
    s3_vectors: Any

    @property
    def bodies(self) -> BodyStore:
        """Those of the history."""
        from dualtrack.storage.bodies import BodyStore  # noqa: PLC0415 - likewise

        return BodyStore(self.dynamodb, self.s3, self.settings.history_table, self.settings.bodies_bucket)


def _vector_indexes(make: Callable[..., VectorIndexes], at: _Place) -> VectorIndexes | None:
    return make(at.s3_vectors, at.settings.course_vectors) if at.settings.course_vectors else None


_MAKERS: Final[Mapping[str, tuple[str, Callable[[Any, _Place], Any]]]] = MappingProxyType(
    {
        "chats": ("chats.ChatStore", lambda make, at: make(at.dynamodb, at.settings.chats_table, at.bodies)),
        "conversations": ("conversations.ConversationStore", lambda make, at: make(at.dynamodb, at.settings.history_table)),
        "forks": ("forks.ForkStore", lambda make, at: make(at.dynamodb, at.settings.history_table)),
        "history": ("history.HistoryStore", lambda make, at: make(at.dynamodb, at.settings.history_table, at.bodies)),
        "digests": ("digests.DigestStore", lambda make, at: make(at.dynamodb, at.settings.history_table)),
        "search_index": ("search_index.SearchIndex", lambda make, at: make(at.dynamodb, at.settings.history_table, at.bodies)),
        "words": ("conversation_words.ConversationWords", lambda make, at: make(at.dynamodb, at.settings.history_table)),
        "bodies": ("bodies.BodyStore", lambda _, at: at.bodies),
        "ledger": ("ledger.Ledger", lambda make, at: make(at.dynamodb, at.settings.credits_table)),
        "paused": ("paused_chats.PausedChats", lambda make, at: make(at.dynamodb, at.settings.chats_table)),
        "kept_ledger": ("kept_ledger.KeptLedger", lambda make, at: make(at.dynamodb, at.settings.credits_table)),
        "uploads": ("uploads.UploadStore", lambda make, at: make(at.dynamodb, at.s3, at.settings.chats_table, at.settings.bodies_bucket)),
        "deletions": ("deletions.Deletions", lambda make, at: make(at.dynamodb, at.settings.history_table, at.settings.chats_table, at.clock)),
        "leases": ("leases.Leases", lambda make, at: make(at.dynamodb, at.settings.cache_table, at.clock, at.settings.dualtrack_open_streams)),
        "requests": ("api_requests.ApiRequests", lambda make, at: make(at.dynamodb, at.settings.chats_table)),
        "keys": ("keys.KeyStore", lambda make, at: make(at.dynamodb, at.settings.chats_table, at.clock, at.settings.dualtrack_key_requests)),
        "outbox": ("outbox.Outbox", lambda make, at: make(at.dynamodb, at.settings.chats_table, at.clock, tells_all=bool(at.settings.dualtrack_event_bus))),
        "cache": ("cache.CacheStore", lambda make, at: make(at.dynamodb, at.settings.cache_table, at.clock)),
        "agents": ("agents.AgentStore", lambda make, at: make(at.dynamodb, at.settings.cache_table, at.clock)),
        "corpora": ("corpora.CorpusStore", lambda make, at: make(at.dynamodb, at.s3, at.settings.history_table, at.settings.bodies_bucket)),
        "corpus_jobs": ("corpus_jobs.CorpusJobs", lambda make, at: make(at.dynamodb, at.settings.history_table, at.clock)),
        "vector_indexes": ("vector_indexes.VectorIndexes", _vector_indexes),
    }
)  # fmt: skip
"""How each is made: its class below `dualtrack.storage`, which is imported when a function first opens it."""


def build_stores(
    settings: Settings,
    dynamodb: DynamoDBClient,
    s3: S3Client,
    clock: Clock = system_clock,
    s3_vectors: Any = None,
    kind: type[S] = Stores,
) -> S:
    """The stores of this kind over these clients. ``s3_vectors`` is used if the settings name a vector bucket."""
    at = _Place(settings, dynamodb, s3, clock, s3_vectors)
    declared: Any = kind
    return kind(**{field.name: _made(field.name, at) for field in fields(declared)})


def _made(name: str, at: _Place) -> Any:
    if name == "clock":
        return at.clock
    place, make = _MAKERS[name]
    module, _, cls = place.partition(".")
    return make(getattr(import_module(f"dualtrack.storage.{module}"), cls), at)


def open_stores(settings: Settings, kind: type[S]) -> S:
    """The stores of this kind over clients with the function's role; the S3 client is created at its first use."""
    dynamodb = boto3.client("dynamodb", config=client_config())
    s3: Any = LazyClient("s3")
    return build_stores(
        settings, dynamodb, s3, s3_vectors=LazyClient("s3vectors", _VECTORS_CONFIG), kind=kind
    )
