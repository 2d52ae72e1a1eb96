"""A request to the API: its caller, its content, and the services to answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.api.identity import ADMIN_GROUP, ApiCaller, bearer_token, identity_of, refuse_erased
from dualtrack.api.key_format import is_key
from dualtrack.api.models import RequestBody, parse_body
from dualtrack.api.rate_limit import count_request
from dualtrack.chat.cost_hold import CostSettings
from dualtrack.chat.receipt import Deployment
from dualtrack.errors import ApiError, invalid_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent
    from mypy_boto3_kms.client import KMSClient

    from dualtrack.api.corpora import CorpusServices
    from dualtrack.api.key_door import KeyDoor
    from dualtrack.api.parameters import QueryParameter
    from dualtrack.api.route import Route
    from dualtrack.api.users import UserPool
    from dualtrack.chat.erase_user import Retention
    from dualtrack.frozen import JsonObject
    from dualtrack.runtime.executions import Executions
    from dualtrack.settings import Settings
    from dualtrack.storage.stores import ApiStores
    from dualtrack.tools.mcp.tokens import Connections

T = TypeVar("T")
B = TypeVar("B", bound=RequestBody)

_NOBODY: Final = ApiCaller("", "")

_ANSWERED_WITHIN: Final = 27.0
"""Seconds: 2 fewer than the gateway waits, for the answer's own way."""


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes need. ``settings``, ``kms``: of these a plug-in makes what its routes need; ``model``: the
    deployment's model for turns; ``costs``: what decides how much a chat may cost."""

    stores: ApiStores
    door: KeyDoor
    executions: Executions
    connections: Connections
    user_pool: UserPool
    retention: Retention
    corpora: CorpusServices
    settings: Settings
    kms: KMSClient
    deployment: Deployment = field(default_factory=Deployment)
    model: str = ""
    costs: CostSettings = field(default_factory=CostSettings)
    upgrade_message: str = ""
    """What a 402 says about getting more credits; empty for the prices."""
    key_percent: int = 0
    """The share of a cap of an API key from which on operators are told; 0 for never."""


@dataclass(frozen=True, slots=True)
class Request:
    """An admitted request. ``identity`` has no user for an open route."""

    event: APIGatewayProxyEvent
    services: Services
    identity: ApiCaller = _NOBODY

    @property
    def user(self) -> str:
        """Whose data it is about."""
        return self.identity.user

    @property
    def is_admin(self) -> bool:
        """Whether an administrator asks."""
        return self.identity.is_admin

    @property
    def stores(self) -> ApiStores:
        """The stores."""
        return self.services.stores

    @property
    def seconds_left(self) -> float:
        """Until when it has to be answered. The gateway gives up 29 s after it has taken the request, and a function
        that had to be started, or waits for its turn, is asked late."""
        received = self.event.raw_event["requestContext"].get("requestTimeEpoch")
        now = self.stores.clock()
        return max(0.0, _ANSWERED_WITHIN - (now - received / 1000 if received else 0))

    def value(self, parameter: QueryParameter[T]) -> T:
        """The value of a parameter; 400 if it is invalid."""
        sent = self.event.headers if parameter.location == "header" else self.event.query_string_parameters
        return parameter.read((sent or {}).get(parameter.name))

    def raw_body(self) -> bytes:
        """The body as it was sent; 400 if it is not UTF-8."""
        try:
            body = self.event.decoded_body if self.event.body else ""
        except ValueError:
            raise invalid_request("The body is not valid UTF-8.") from None
        return (body or "").encode("utf-8", "surrogatepass")

    def body(self, kind: type[B]) -> B:
        """The body as its model; 400 that names the first wrong field."""
        return parse_body(kind, self.raw_body())


def admit(event: APIGatewayProxyEvent, services: Services, route: Route) -> Request:
    """The request, counted for its caller. Raises 401, 429, 503, 400 for the end user that it names, or 403 for what
    the caller may not do."""
    if route.access == "open":
        return Request(event, services)
    identity = _caller(event, services.door, for_owner=route.for_owner)
    refuse_erased(services.stores.deletions, identity)
    if identity.is_counted:
        count_request(services.stores.requests, identity.user, int(services.stores.clock()))
    identity.require_scope(route.scopes)
    if route.access == "admin":
        _require_admin(identity, services.user_pool)
    if identity.payer != identity.user and route.method == "post" and not route.admits:
        services.stores.keys.note_end_user(identity.payer, identity.user)
    return Request(event, services, identity)


def _caller(event: APIGatewayProxyEvent, door: KeyDoor, *, for_owner: bool) -> ApiCaller:
    """The caller, from a key, or from the claims of a token that the gateway has verified."""
    raw = event.raw_event
    headers = _headers(raw)
    token = bearer_token(headers("authorization"))
    if is_key(token):
        return door.identify(token, headers, for_owner=for_owner)
    identity = identity_of(claims_of(raw), token)
    door.refuse_name(headers)
    return identity


def _headers(raw_event: JsonObject) -> Callable[[str], Sequence[str]]:
    """The values of a header, by its name in any case."""
    sent: dict[str, list[str]] = {}
    for name, values in (raw_event.get("multiValueHeaders") or {}).items():
        sent.setdefault(name.lower(), []).extend(values)
    return lambda name: sent.get(name.lower(), ())


def _require_admin(identity: ApiCaller, pool: UserPool) -> None:
    """Raise 403 unless an administrator asks. A key is one's as long as its owner is in the group: the pool is asked,
    because a key, unlike a token, does not expire soon after its owner has left the group."""
    if identity.key is None:
        identity.require_admin()
    elif not pool.is_member(identity.payer, ADMIN_GROUP):
        raise ApiError("forbidden", "The owner of this key is no administrator.")


def claims_of(raw_event: JsonObject) -> JsonObject:
    """The claims that the gateway has verified; none for an open route, and for the way in of keys."""
    return (raw_event["requestContext"].get("authorizer") or {}).get("claims") or {}
