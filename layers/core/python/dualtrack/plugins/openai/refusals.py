"""Refusals in OpenAI's form (CONTRACT 10): ``{"error": {"message", "type", "param", "code"}}``.

The fields of our own refusals stay beside them: a 402 still says what is required, available, and when it resets.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.errors import ApiError

_QUOTA: Final = "insufficient_quota"

_TYPES: Final[Mapping[str, tuple[str, str | None]]] = MappingProxyType(
    {
        "invalid_request": ("invalid_request_error", None),
        "unauthorized": ("invalid_request_error", "invalid_api_key"),
        "insufficient_credits": (_QUOTA, _QUOTA),
        "key_cap_reached": (_QUOTA, _QUOTA),
        "forbidden": ("permission_error", "forbidden"),
        "not_found": ("invalid_request_error", "not_found"),
        "rate_limited": ("rate_limit_error", "rate_limit_exceeded"),
    }
)
"""The type and the code of a refusal, by our own code. OpenAI's documentation, "Error codes"."""


def refused_as(code: str) -> str:
    """The code of the refusal that tells of a chat that failed with this one: how busy a model is, no refusal says."""
    return "unavailable" if code == "model_busy" else code


def status_of(refusal: ApiError) -> int:
    """The status: OpenAI's clients know no 402."""
    return 429 if refusal.status == 402 else refusal.status


def body_of(refusal: ApiError) -> dict[str, Any]:
    """The body."""
    kind, code = _TYPES.get(
        refusal.code, ("server_error" if refusal.status >= 500 else "invalid_request_error", refusal.code)
    )
    said = {"message": refusal.message, "type": kind, "param": None, "code": code}
    return {"error": {**refusal.extra, **said}}


def headers_of(refusal: ApiError) -> dict[str, str]:
    """When to try again. A client that would try a refusal again although nothing can have changed is told not to:
    OpenAI's own obey ``x-should-retry``."""
    wait = refusal.extra.get("retry_after")
    headers = {"Retry-After": str(wait)} if wait else {}
    return headers if refusal.status >= 500 or wait else {**headers, "x-should-retry": "false"}


def answer_to(refusal: ApiError) -> JSONResponse:
    """The whole answer."""
    return JSONResponse(body_of(refusal), status_of(refusal), headers_of(refusal))


def other_method(method: str) -> JSONResponse:
    """405 for a path that takes this method alone."""
    said = f"This takes {method} alone."
    error = {"message": said, "type": "invalid_request_error", "param": None, "code": "method_not_allowed"}
    return JSONResponse({"error": error}, 405, {"Allow": method, "x-should-retry": "false"})
