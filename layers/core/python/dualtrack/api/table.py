"""All routes of the API: those of the resources, and two open ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import answers
from dualtrack.api.openapi import openapi_document
from dualtrack.api.route import Answer, Route
from dualtrack.api.routes import account, admin, chats, conversations, corpora, tools

if TYPE_CHECKING:
    from dualtrack.api.request import Request


@Route(
    "get",
    "/health",
    "Whether the API answers",
    {200: answers.Health},
    access="open",
    description="For monitors; it checks nothing else.",
)
def get_health(request: Request) -> Answer:  # noqa: ARG001
    return Answer(200, {"status": "ok"})


@Route(
    "get", "/openapi.json", "This document", {200: answers.OpenAPI}, access="open", description="OpenAPI 3.1."
)
def get_openapi(request: Request) -> Answer:  # noqa: ARG001
    return Answer(200, openapi_document(ROUTES))


ROUTES: Final = (
    *(
        declared
        for resource in (chats, conversations, tools, account, admin, corpora)
        for declared in vars(resource).values()
        if isinstance(declared, Route)
    ),
    get_health,
    get_openapi,
)
