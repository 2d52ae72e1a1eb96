"""The stores a step works with, opened once per container."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from dualtrack.clock import system_clock
from dualtrack.errors import ChatClosed
from dualtrack.storage.agents import AgentStore
from dualtrack.storage.api_requests import ApiRequests
from dualtrack.storage.bodies import Body, BodyStore
from dualtrack.storage.cache import CacheStore
from dualtrack.storage.chats import Chat, ChatStore, chat_partition
from dualtrack.storage.clients import LazyClient, client_config
from dualtrack.storage.conversations import ConversationStore
from dualtrack.storage.corpora import CorpusStore
from dualtrack.storage.corpus_jobs import CorpusJobs
from dualtrack.storage.deletions import Deletions
from dualtrack.storage.digests import DigestStore
from dualtrack.storage.dynamo import Lost, transact
from dualtrack.storage.event_log import EventLog
from dualtrack.storage.forks import ForkStore
from dualtrack.storage.history import HistoryStore
from dualtrack.storage.kept_ledger import KeptLedger
from dualtrack.storage.leases import Leases
from dualtrack.storage.ledger import Ledger
from dualtrack.storage.search_index import SearchIndex
from dualtrack.storage.vector_indexes import VectorIndexes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from dualtrack.clock import Clock
    from dualtrack.memory.ancestry import Ancestry
    from dualtrack.memory.digests import Digest
    from dualtrack.memory.records import QueryTrack
    from dualtrack.models.spent import Side
    from dualtrack.requests import ChatRef
    from dualtrack.settings import Settings
    from dualtrack.storage.bodies import Write
    from dualtrack.storage.conversations import Conversation
    from dualtrack.storage.dynamo import Action

_HELD: Final = "held"

_VECTORS_CONFIG: Final = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "max_attempts": 4}
)
"""If a query is not answered, the search still has enough time to rank by keywords."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Every store of a stage, over one DynamoDB client and one S3 client."""

    dynamodb: DynamoDBClient
    chats: ChatStore
    conversations: ConversationStore
    forks: ForkStore
    history: HistoryStore
    digests: DigestStore
    search_index: SearchIndex
    requests: ApiRequests
    bodies: BodyStore
    ledger: Ledger
    kept_ledger: KeptLedger
    deletions: Deletions
    leases: Leases
    cache: CacheStore
    agents: AgentStore
    corpora: CorpusStore
    corpus_jobs: CorpusJobs
    clock: Clock
    vector_indexes: VectorIndexes | None = None
    """Where the vectors of courses are, if not in their index; else None."""

    def across(self, ancestry: Ancestry) -> Stores:
        """The stores as a conversation with this ancestry sees them: shared records and digests are read where they
        are stored. Required before a past is read; it changes nothing for a conversation that is not a fork.
        """
        if not ancestry.parts:
            return self
        history, digests = replace(self.history, ancestry=ancestry), replace(self.digests, ancestry=ancestry)
        return replace(self, history=history, digests=digests)

    def log(self, chat: Chat | ChatRef) -> EventLog:
        """The chat's event log."""
        pk = chat_partition(chat.user, chat.chat_id)
        return EventLog(self.dynamodb, self.chats.table, pk, chat.chat_id, self.clock, self.bodies)

    def write_past(self, chat: Chat, writes: Sequence[Write]) -> None:
        """Write to the conversation's past, in one transaction, while the chat holds the conversation's lease.

        Such a write has no event, so not the chat's log but the lease fences it and its bodies in the table. An object
        in S3 has no condition: before it is written, the log is checked (event_log.py). Raises `ChatClosed` if the
        chat has ended, and `Lost` if a condition of the caller is false.
        """
        objects = [write for write in writes if isinstance(write, Body) and write.is_object]
        if objects:
            self.log(chat).next_slot()
        for body in objects:
            self.bodies.write(body)
        actions = self._actions(write for write in writes if write not in objects)
        held = self.conversations.held_check(_HELD, chat.user, chat.conversation_id, chat.chat_id)
        try:
            transact(self.dynamodb, [held, *actions])
        except Lost as lost:
            if _HELD in lost.items:
                raise ChatClosed(chat.chat_id) from lost
            raise

    def write_track(self, conversation: Conversation, track: QueryTrack) -> None:
        """Write the track of an ended query unless its conversation is being deleted. Raises `Lost` if it is, or if
        the track exists. The last pass of a deletion removes an object that is written late."""
        writes = self.history.track_writes(conversation.user, conversation.conversation_id, track)
        objects = [body for body in writes if isinstance(body, Body) and body.is_object]
        for body in objects:
            self.bodies.write(body)
        actions = self._actions(write for write in writes if write not in objects)
        transact(self.dynamodb, [self.forks.exists_action(conversation), *actions])

    def commit(self, actions: Sequence[Action]) -> None:
        """Write all actions or none. Raises `Lost` if a condition is false."""
        transact(self.dynamodb, actions)

    def _actions(self, writes: Iterable[Write]) -> list[Action]:
        return [self.bodies.put_action(write) if isinstance(write, Body) else write for write in writes]

    def write_ahead(self, chat: Chat, digest: Digest, fold: Side) -> None:
        """Write a waiting digest and its usage for a chat that has ended. A deletion removes the chat before
        the digests, so no digest can be written after it. Raises `Lost` if the chat is gone or the digest's number is
        taken."""
        put = self.digests.put_action(chat.user, chat.conversation_id, digest)
        transact(self.dynamodb, [self.chats.fold_action(chat, fold), put])


def build_stores(
    settings: Settings,
    dynamodb: DynamoDBClient,
    s3: S3Client,
    clock: Clock = system_clock,
    s3_vectors: Any = None,
) -> Stores:
    """Stores over these clients. ``s3_vectors`` is used if the settings name a vector bucket."""
    bodies = BodyStore(dynamodb, s3, settings.history_table, settings.bodies_bucket)
    return Stores(
        dynamodb=dynamodb,
        chats=ChatStore(dynamodb, settings.chats_table, bodies),
        conversations=ConversationStore(dynamodb, settings.history_table),
        forks=ForkStore(dynamodb, settings.history_table),
        history=HistoryStore(dynamodb, settings.history_table, bodies),
        digests=DigestStore(dynamodb, settings.history_table),
        search_index=SearchIndex(dynamodb, settings.history_table, bodies),
        bodies=bodies,
        ledger=Ledger(dynamodb, settings.credits_table),
        kept_ledger=KeptLedger(dynamodb, settings.credits_table),
        deletions=Deletions(dynamodb, settings.history_table, settings.chats_table, clock),
        leases=Leases(dynamodb, settings.cache_table, clock),
        requests=ApiRequests(dynamodb, settings.chats_table),
        cache=CacheStore(dynamodb, settings.cache_table, clock),
        agents=AgentStore(dynamodb, settings.cache_table, clock),
        corpora=CorpusStore(dynamodb, s3, settings.history_table, settings.bodies_bucket),
        corpus_jobs=CorpusJobs(dynamodb, settings.history_table, clock),
        clock=clock,
        vector_indexes=VectorIndexes(s3_vectors, settings.course_vectors)
        if settings.course_vectors
        else None,
    )


def open_stores(settings: Settings) -> Stores:
    """Stores over clients with the function's role; the S3 client is created at its first use."""
    dynamodb = boto3.client("dynamodb", config=client_config())
    s3: Any = LazyClient("s3")
    return build_stores(settings, dynamodb, s3, s3_vectors=LazyClient("s3vectors", _VECTORS_CONFIG))
