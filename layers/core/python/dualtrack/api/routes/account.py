"""A user's own account: /v1/me, /v1/credits and /v1/connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import answers, models
from dualtrack.api.erasure import erase
from dualtrack.api.parameters import CURSOR, LIMIT
from dualtrack.api.route import Answer, Route

if TYPE_CHECKING:
    from dualtrack.api.request import Request

GITHUB: Final = "/v1/connections/github"


@Route(
    "delete",
    "/v1/me",
    "Erase the user and all their data",
    {202: answers.Erasure},
    description="The user is refused from then on. The ledger keeps anonymous amounts for as long as the "
    "stage's setting says.",
)
def delete_me(request: Request) -> Answer:
    return Answer(202, erase(request.services, request.user))


@Route(
    "get",
    "/v1/credits",
    "Read the balance",
    {200: answers.Credits},
    description="Days and months begin at 00:00 UTC.",
)
def get_credits(request: Request) -> Answer:
    stores = request.stores
    return Answer(200, stores.ledger.load(request.user).balance(stores.clock()))


@Route(
    "get",
    "/v1/credits/ledger",
    "List the changes of the balance, newest first",
    {200: answers.Ledger},
    parameters=(CURSOR, LIMIT),
    description="Holds, settlements, releases, grants and changes of plan.",
)
def get_ledger(request: Request) -> Answer:
    page = request.stores.ledger.entries(request.user, request.value(CURSOR), request.value(LIMIT))
    return Answer(200, page.body("entries"))


@Route(
    "put",
    GITHUB,
    "Connect GitHub with the user's own token",
    {200: answers.Connection},
    models.ConnectionBody,
    description="GitHub tools then act as this user.",
)
def put_connection(request: Request) -> Answer:
    token = request.body(models.ConnectionBody).token
    request.services.connections.connect(request.user, token, request.stores.clock())
    return Answer(200, {"connected": True})


@Route(
    "get",
    GITHUB,
    "Whether GitHub is connected",
    {200: answers.Connection},
    description="The token itself is never returned.",
)
def get_connection(request: Request) -> Answer:
    connection = request.services.connections.find(request.user)
    return Answer(200, {"connected": connection is not None})


@Route(
    "delete",
    GITHUB,
    "Disconnect GitHub",
    {204: None},
    description="Deletes the stored token. It is not an error if there is none.",
)
def delete_connection(request: Request) -> Answer:
    request.services.connections.disconnect(request.user)
    return Answer(204)
