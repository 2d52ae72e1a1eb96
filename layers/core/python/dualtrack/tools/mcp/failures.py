"""Why an MCP call failed, in words that the model can act on.

A failure is a value: what happened (`FailureKind`), the HTTP status if there was one, and whether the request may have
reached the tool (then a tool that changes something is not retried).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

FailureKind = Literal[
    "unauthorized",
    "forbidden",
    "rate_limited",
    "not_found",
    "refused",
    "protocol",
    "timeout",
    "down",
    "too_large",
]

DOWN_STATUSES: Final = frozenset({500, 502, 503, 504, 529})


class McpFailure(Exception):
    """A call or listing failed."""

    def __init__(self, failure: RequestFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """What is known about a failed request. ``retry_after``: seconds, as sent by the server. ``reached``: the tool may
    have run."""

    kind: FailureKind
    server: str
    detail: str = ""
    status: int | None = None
    retry_after: str = ""
    reached: bool = True

    @property
    def text(self) -> str:
        """The message for the model, without tokens and internal addresses."""
        sentence = _SENTENCES[self.kind].format(server=self.server)
        status = f" (HTTP {self.status})" if self.status else ""
        wait = f" It says: retry after {self.retry_after} s." if self.retry_after else ""
        detail = f" {self.detail}" if self.detail else ""
        return f"{sentence}{status}.{wait}{detail}"


_SENTENCES: Final[dict[FailureKind, str]] = {
    "unauthorized": "the MCP server {server} did not accept the token",
    "forbidden": "the MCP server {server} refused access",
    "rate_limited": "the MCP server {server} limits the rate of calls",
    "not_found": "the MCP server {server} does not know this tool or address",
    "refused": "the MCP server {server} refused the request",
    "protocol": "the MCP server {server} gave an answer that does not follow the protocol",
    "timeout": "the MCP server {server} did not answer in time",
    "down": "the MCP server {server} cannot be reached at the moment",
    "too_large": "the MCP server {server} sent more than can be read: ask for less",
}


def kind_of_status(status: int) -> FailureKind:
    """The kind of failure for an HTTP status of an MCP server."""
    if status in DOWN_STATUSES:
        return "down"
    kinds: dict[int, FailureKind] = {
        401: "unauthorized",
        403: "forbidden",
        404: "not_found",
        408: "timeout",
        429: "rate_limited",
    }
    return kinds.get(status, "refused")


def may_repeat(failure: RequestFailure, *, repeatable: bool) -> bool:
    """Whether to retry: the server was down, and the tool did not run or may run twice."""
    return failure.kind == "down" and (repeatable or not failure.reached)
