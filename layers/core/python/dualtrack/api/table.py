"""All routes of the API: those of the resources, of the plug-ins, and two open ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api.route import Ok, Route
from dualtrack.api.routes import (
    account,
    admin,
    chats,
    conversations,
    corpora,
    keys,
    pauses,
    tools,
    uploads,
)
from dualtrack.plugin import values

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request


@Route(
    "get",
    "/health",
    "Whether the API answers",
    access="open",
    description="For monitors; it checks nothing else.",
)
def get_health(request: Request) -> Ok[answers.Health]:  # noqa: ARG001
    body: answers.Health = {"status": "ok"}
    return Ok(body)


@Route("get", "/openapi.json", "This document", access="open", description="OpenAPI 3.1.")
def get_openapi(request: Request) -> Ok[answers.OpenAPI]:  # noqa: ARG001
    from dualtrack.api.openapi import openapi_document  # noqa: PLC0415 - loads the types of all answers

    return Ok(openapi_document(ROUTES))


ROUTES: Final[tuple[Route, ...]] = (
    *(
        declared
        for resource in (
            chats,
            uploads,
            pauses,
            conversations,
            tools,
            account,
            keys,
            admin,
            corpora,
        )
        for declared in vars(resource).values()
        if isinstance(declared, Route)
    ),
    *values("routes", Route),
    get_health,
    get_openapi,
)
