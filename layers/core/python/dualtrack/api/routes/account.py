"""A user's own account: /v1/me, /v1/credits and /v1/connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import models
from dualtrack.api.erasure import erase, erase_end_user
from dualtrack.api.parameters import CURSOR, DAYS, LIMIT
from dualtrack.api.route import Accepted, NoContent, Ok, Route
from dualtrack.api.spending import spending_of

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request

END_USER: Final = "/v1/me/users/{name}"
GITHUB: Final = "/v1/connections/github"


@Route(
    "delete",
    "/v1/me",
    "Erase the user and all their data",
    description="The user is refused from then on. The ledger keeps anonymous amounts for as long as the "
    "stage's setting says.",
)
def delete_me(request: Request) -> Accepted[answers.Erasure]:
    return Accepted(erase(request.services, request.user))


@Route(
    "delete",
    END_USER,
    "Erase an end user of your service, and all their data",
    scopes=("erase",),
    for_owner=True,
    description="For whom keys with `acts_for` have acted. The name can be used again when all is deleted.",
)
def delete_end_user(request: Request, name: str) -> Accepted[answers.Erasure]:
    return Accepted(erase_end_user(request.services, request.identity.payer, name))


@Route(
    "get",
    "/v1/credits",
    "Read the balance",
    scopes=("read",),
    for_owner=True,
    description="Days and months begin at 00:00 UTC. With an API key, the balance of its owner.",
)
def get_credits(request: Request) -> Ok[answers.Credits]:
    stores = request.stores
    return Ok(stores.ledger.load(request.identity.payer).balance(stores.clock()))


@Route(
    "get",
    "/v1/credits/ledger",
    "List the changes of the balance, newest first",
    parameters=(CURSOR, LIMIT),
    scopes=("read",),
    for_owner=True,
    description="Holds, settlements, releases, grants and changes of plan.",
)
def get_ledger(request: Request) -> Ok[answers.Ledger]:
    page = request.stores.ledger.entries(request.identity.payer, request.value(CURSOR), request.value(LIMIT))
    body: answers.Ledger = {"entries": page.items, **page.rest}
    return Ok(body)


@Route(
    "get",
    "/v1/credits/spending",
    "Read what the chats cost, by day, API key and agent",
    parameters=(DAYS,),
    scopes=("read",),
    for_owner=True,
    description="Credits charged, and dollars by the price table. With an API key, the spending of its owner.",
)
def get_spending(request: Request) -> Ok[answers.Spending]:
    return Ok(spending_of(request.stores, request.identity.payer, request.value(DAYS)))


@Route(
    "put",
    GITHUB,
    "Connect GitHub with the user's own token",
    models.ConnectionBody,
    description="GitHub tools then act as this user.",
)
def put_connection(request: Request) -> Ok[answers.Connection]:
    token = request.body(models.ConnectionBody).token
    request.services.connections.connect(request.user, token, request.stores.clock())
    body: answers.Connection = {"connected": True}
    return Ok(body)


@Route(
    "get",
    GITHUB,
    "Whether GitHub is connected",
    description="The token itself is never returned.",
)
def get_connection(request: Request) -> Ok[answers.Connection]:
    connection = request.services.connections.find(request.user)
    body: answers.Connection = {"connected": connection is not None}
    return Ok(body)


@Route(
    "delete",
    GITHUB,
    "Disconnect GitHub",
    description="Deletes the stored token. It is not an error if there is none.",
)
def delete_connection(request: Request) -> NoContent:
    request.services.connections.disconnect(request.user)
    return NoContent()
