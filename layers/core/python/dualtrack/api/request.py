"""A request to the API: its caller, its content, and the services to answer it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from dualtrack.api.identity import Identity, bearer_token, identity_of, refuse_erased
from dualtrack.api.models import Body, parse_body
from dualtrack.api.rate_limit import count_request
from dualtrack.chat.receipt import Deployment
from dualtrack.errors import invalid_request

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

    from dualtrack.api.corpora import CorpusServices
    from dualtrack.api.parameters import Parameter
    from dualtrack.api.route import Access
    from dualtrack.api.users import UserPool
    from dualtrack.chat.erase_user import Retention
    from dualtrack.frozen import JsonObject
    from dualtrack.runtime.executions import Executions
    from dualtrack.storage.stores import ApiStores
    from dualtrack.tools.mcp.tokens import Connections

T = TypeVar("T")
B = TypeVar("B", bound=Body)

_NOBODY: Final = Identity("", "")


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes need. ``model``: the deployment's model for turns."""

    stores: ApiStores
    executions: Executions
    connections: Connections
    user_pool: UserPool
    retention: Retention
    corpora: CorpusServices
    deployment: Deployment = field(default_factory=Deployment)
    model: str = ""
    upgrade_message: str = ""
    """What a 402 says about getting more credits; empty for the prices."""


@dataclass(frozen=True, slots=True)
class Request:
    """An admitted request. ``identity`` has no user for an open route."""

    event: APIGatewayProxyEvent
    services: Services
    identity: Identity = _NOBODY

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

    def value(self, parameter: Parameter[T]) -> T:
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


def admit(event: APIGatewayProxyEvent, services: Services, access: Access) -> Request:
    """The request, counted for its caller. Raises 401, 429, or 403 if the route needs an administrator."""
    if access == "open":
        return Request(event, services)
    identity = _caller(event)
    refuse_erased(services.stores.deletions, identity.user)
    count_request(services.stores.requests, identity.user, int(services.stores.clock()))
    if access == "admin":
        identity.require_admin()
    return Request(event, services, identity)


def _caller(event: APIGatewayProxyEvent) -> Identity:
    """The caller, from the claims that the gateway has verified."""
    raw = event.raw_event
    headers = (raw.get("multiValueHeaders") or {}).items()
    authorizations = [
        value for name, values in headers if name.lower() == "authorization" for value in values
    ]
    return identity_of(claims_of(raw), bearer_token(authorizations))


def claims_of(raw_event: JsonObject) -> JsonObject:
    """The claims that the gateway has verified; none for an open route."""
    return (raw_event["requestContext"].get("authorizer") or {}).get("claims") or {}
