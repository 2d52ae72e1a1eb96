"""The stores a step works with, opened once per container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from dualtrack.clock import system_clock
from dualtrack.storage.api_requests import ApiRequests
from dualtrack.storage.bodies import BodyStore
from dualtrack.storage.cache import CacheStore
from dualtrack.storage.chats import Chat, ChatStore, chat_partition
from dualtrack.storage.conversations import ConversationStore
from dualtrack.storage.event_log import EventLog
from dualtrack.storage.history import HistoryStore
from dualtrack.storage.leases import Leases
from dualtrack.storage.ledger import Ledger

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from dualtrack.clock import Clock
    from dualtrack.requests import ChatRef
    from dualtrack.settings import Settings


@dataclass(frozen=True, slots=True)
class Stores:
    """Every store of a stage, over one DynamoDB client and one S3 client."""

    dynamodb: DynamoDBClient
    chats: ChatStore
    conversations: ConversationStore
    history: HistoryStore
    requests: ApiRequests
    bodies: BodyStore
    ledger: Ledger
    leases: Leases
    cache: CacheStore
    clock: Clock

    def log(self, chat: Chat | ChatRef) -> EventLog:
        """The chat's event log."""
        pk = chat_partition(chat.user, chat.chat_id)
        return EventLog(self.dynamodb, self.chats.table, pk, chat.chat_id, self.clock, self.bodies)


def build_stores(
    settings: Settings, dynamodb: DynamoDBClient, s3: S3Client, clock: Clock = system_clock
) -> Stores:
    """Stores over given clients."""
    bodies = BodyStore(dynamodb, s3, settings.history_table, settings.bodies_bucket)
    return Stores(
        dynamodb=dynamodb,
        chats=ChatStore(dynamodb, settings.chats_table, bodies),
        conversations=ConversationStore(dynamodb, settings.history_table),
        history=HistoryStore(dynamodb, settings.history_table, bodies),
        bodies=bodies,
        ledger=Ledger(dynamodb, settings.credits_table),
        leases=Leases(dynamodb, settings.cache_table, clock),
        requests=ApiRequests(dynamodb, settings.chats_table),
        cache=CacheStore(dynamodb, settings.cache_table, clock),
        clock=clock,
    )


def open_stores(settings: Settings) -> Stores:
    """Stores over clients of the function's own role; S3 is connected at its first use."""
    dynamodb = boto3.client("dynamodb", config=client_config())
    s3: Any = LazyClient("s3")
    return build_stores(settings, dynamodb, s3)


def client_config() -> Config:
    """Short timeouts: a step's own deadline is what retries have to fit in."""
    return Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard", "max_attempts": 5})


class LazyClient:
    """A boto3 client made at its first use: most steps never touch S3 or Step Functions."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._client: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._client is None:
            self._client = boto3.client(self._service, config=client_config())  # type: ignore[call-overload]
        return getattr(self._client, name)
