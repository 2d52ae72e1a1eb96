"""A route of the API, declared by a decorator on the function that serves it.

The resolver, the OpenAPI document, the gateway and the tests read the same declarations (`dualtrack.api.table`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from dualtrack.api.parameters import QueryParameter
    from dualtrack.vocabulary import Scope

Access = Literal["open", "user", "admin"]

EVENTS_PATH: Final = "/v1/chats/{chat_id}/events"
"""The function ``stream`` serves this path; ``api`` serves all others."""

CHAT_READERS: Final[tuple[Scope, ...]] = ("chat", "read")
"""With one of these scopes a key reads a chat: with `chat` one that it has started, with `read` any of its user's."""

KEY_PATH: Final = "/key"
"""Before the path of a request with an API key: ``/v1`` stands behind the user pool, ``/key/v1`` checks keys itself."""

_PATH_PARAMETER: Final = re.compile(r"{(\w+)}")


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ApiResponse(Generic[T_co]):
    """The body (JSON, the bytes of a file, or None for no body) and additional headers."""

    status: ClassVar[int]
    body: T_co
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class Ok(ApiResponse[T_co]):
    """Status 200."""

    status = 200


class Created(ApiResponse[T_co]):
    """Status 201."""

    status = 201


class Accepted(ApiResponse[T_co]):
    """Status 202."""

    status = 202


@dataclass(frozen=True, slots=True)
class NoContent(ApiResponse[None]):
    """Status 204, without a body."""

    status = 204
    body: None = None


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """An operation. It is a decorator: the decorated function becomes ``serve``.

    That function's return type declares the answers: ``Ok[answers.Chat] | Accepted[answers.StartedChat]``
    (`dualtrack.answers`; bytes for a file), which the type checker compares with what it returns.
    ``refused``: error codes of the contract besides those that follow from the declaration.
    """

    method: str
    path: str
    summary: str
    body: type[BaseModel] | None = None
    parameters: tuple[QueryParameter[Any], ...] = ()
    refused: tuple[str, ...] = ()
    access: Access = "user"
    scopes: tuple[Scope, ...] = ()
    """An API key needs one of them, the last if it is to be named; none: no key may do this, a token alone."""
    for_owner: bool = False
    """Whether a service's key names no end user here, because it is about its owner's account."""
    admits: bool = False
    """Whether nothing is stored of a request that is refused: its end user is noted with what it makes."""
    description: str = ""
    """More than the summary, in Markdown."""
    serve: Callable[..., ApiResponse[object]] | None = None
    """``(request, **path parameters)`` → the answer; None for the events: ``stream`` serves them."""

    def __call__(self, serve: Callable[..., ApiResponse[object]]) -> Route:
        """The route that this function serves."""
        return replace(self, serve=serve)

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The names of the path parameters, in order."""
        return tuple(_PATH_PARAMETER.findall(self.path))

    @property
    def refusals(self) -> frozenset[str]:
        """Every error code that the route may return (CONTRACT 4)."""
        codes = {"internal", "unavailable", "timeout", *self.refused}
        if self.access != "open":
            codes |= {"unauthorized", "rate_limited", "forbidden", "invalid_request"}
        if self.path_parameters:
            codes |= {"not_found"}
        if self.parameters or self.body:
            codes |= {"invalid_request"}
        return frozenset(codes | ({"too_large"} if self.body else set()))
