"""Plug-ins' own APIs, which the function ``stream`` serves: each declares one in its part ``streamed``.

The gateway leads everything below such an API's path to the function and checks nobody; the API does, by `Identify`,
and counts the requests of users.
Declarations are light: the function, the gateway and the list of doors read them, and what answers is loaded with the
first request.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from dualtrack.plugin import values

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb.client import DynamoDBClient
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from dualtrack.api.identity import ApiCaller
    from dualtrack.errors import ApiError
    from dualtrack.settings import Settings
    from dualtrack.streaming.follow_events import EventReader
    from dualtrack.vocabulary import Scope

    Identify = Callable[[Request, "StreamedRoute"], ApiCaller]
    """Who asks for a route, by a token, or by a key with one of its scopes. Raises `ApiError`."""


@dataclass(frozen=True, slots=True)
class StreamedRoute:
    """``path``: behind its API's; ``scopes``: an API key needs one of them; ``parameters``: of the query and the
    headers; ``for_owner``: a service's key names no end user here."""

    method: str
    path: str
    scopes: tuple[Scope, ...]
    parameters: tuple[str, ...] = ()
    for_owner: bool = False


@dataclass(frozen=True, slots=True)
class StreamServices:
    """What the function has for it: clients with its role, and ``reader``, which follows a chat for as long as an
    answer may take."""

    settings: Settings
    dynamodb: DynamoDBClient
    s3: Any
    step_functions: Any
    reader: EventReader
    identify: Identify


@dataclass(frozen=True, slots=True)
class StreamedApi:
    """``name``: as the function's description has it; ``open``: the app below ``path``; ``refused``: the answer to a
    refusal that comes before it."""

    name: str
    path: str
    routes: tuple[StreamedRoute, ...]
    open: Callable[[StreamServices], ASGIApp]
    refused: Callable[[ApiError], Response]


@cache
def streamed_apis() -> tuple[StreamedApi, ...]:
    """Those of all plug-ins."""
    return values("streamed", StreamedApi)


def api_at(path: str) -> StreamedApi | None:
    """The one below whose path this is."""
    return next((api for api in streamed_apis() if path.startswith(api.path)), None)
