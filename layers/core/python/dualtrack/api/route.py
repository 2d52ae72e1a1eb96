"""A route of the API, declared by a decorator on the function that serves it.

The resolver, the OpenAPI document, the gateway and the tests read the same declarations (`dualtrack.api.table`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from dualtrack.api.parameters import Parameter

Access = Literal["open", "user", "admin"]

EVENTS_PATH: Final = "/v1/chats/{chat_id}/events"
"""The function ``stream`` serves this path; ``api`` serves all others."""

_PATH_PARAMETER: Final = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, the body (JSON, the bytes of a file, or None for no body) and additional headers."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """An operation. It is a decorator: the decorated function becomes ``serve``.

    ``answers``: the type of the body by status (`dualtrack.api.answers`; bytes for a file; None for no body).
    ``refused``: error codes of the contract besides those that follow from the declaration.
    """

    method: str
    path: str
    summary: str
    answers: Mapping[int, type | None]
    body: type[BaseModel] | None = None
    parameters: tuple[Parameter[Any], ...] = ()
    refused: tuple[str, ...] = ()
    access: Access = "user"
    description: str = ""
    """More than the summary, in Markdown."""
    serve: Callable[..., Answer] | None = None
    """``(request, **path parameters)`` → the answer; None if another function serves it."""

    def __call__(self, serve: Callable[..., Answer]) -> Route:
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
            codes |= {"unauthorized", "rate_limited"}
        if self.access == "admin":
            codes |= {"forbidden"}
        if self.path_parameters:
            codes |= {"not_found"}
        if self.parameters or self.body:
            codes |= {"invalid_request"}
        return frozenset(codes | ({"too_large"} if self.body else set()))
