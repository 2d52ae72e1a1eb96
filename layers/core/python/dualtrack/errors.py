"""Every error that dualtrack raises on purpose.

DualtrackError
├── ApiError                  refused: becomes {"error": {"code", "message", …}}
│   (one per contract code: see the constructors below)
├── Transient                 a retry of the step may succeed: the workflow retries
│   ├── ModelUnavailable      Claude answered 408/409/429/5xx, or the stream was cut
│   │   └── ModelBusy         Claude is overloaded or limits the rate: the chat waits for it
│   └── Contended             a transaction met conflicts too often
├── ModelRefused              the model's service rejects this request (4xx): retries do not help
├── Superseded                a zombie: another run has gone on; stop without writing anything
│   └── ChatClosed            the chat's event log has its terminal event
├── Gone                      deleted with its conversation, between two reads
└── TookTooLong               work exceeded its time limit
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.frozen import Json


class DualtrackError(Exception):
    """Base of all errors raised on purpose."""


class Transient(DualtrackError):
    """A retry of the same step may succeed. Handlers let it through: Step Functions retries."""


class ModelUnavailable(Transient):
    """Claude could not answer this time (408, 409, 429, 5xx, timeout, interrupted stream).

    The message names the class: not every runtime passes an exception's class on to the workflow.
    """

    def __str__(self) -> str:
        return f"{type(self).__name__}: {super().__str__()}"


class ModelBusy(ModelUnavailable):
    """The model's service is overloaded or limits the rate (429, 529, ``retry-after``).

    ``reason``: one of `dualtrack.models.busy.Reason`; ``seconds``: how long to wait, as the service asks; 0 if it
    does not say.
    """

    def __init__(self, text: str, reason: str, seconds: float = 0.0) -> None:
        super().__init__(text)
        self.reason = reason
        self.seconds = seconds


class ModelRefused(DualtrackError):
    """The model's service rejects this request (4xx): a retry does not help. ``status``: the HTTP status;
    ``too_long``: the service says that the request is too long, in tokens or in bytes."""

    def __init__(self, text: str, status: int, *, too_long: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.too_long = too_long


class Contended(Transient):
    """A transaction still met conflicts or throttling after all its retries."""


class Superseded(DualtrackError):
    """Another run of this step has overtaken this one, or the chat has ended."""


class ChatClosed(Superseded):
    """The terminal event is written: nothing more can be appended."""


class TookTooLong(DualtrackError):
    """Work exceeded its time limit; it may still be running."""


class Gone(DualtrackError):
    """An item that this one points to, or depends on, was deleted after this one was read.

    The reader then answers 404 for a single record or chat, leaves it out of a list, or ends the step's chat.
    """


STATUS_OF_CODE: Final[Mapping[str, int]] = {
    "invalid_request": 400,
    "unauthorized": 401,
    "insufficient_credits": 402,
    "forbidden": 403,
    "not_found": 404,
    "conversation_busy": 409,
    "idempotency_conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
    "timeout": 504,
}


class ApiError(DualtrackError):
    """A refusal in the contract's form (CONTRACT 4). ``extra`` adds fields beside code and message."""

    def __init__(self, code: str, message: str, extra: Mapping[str, Json] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS_OF_CODE[code]
        self.message = message
        self.extra: Mapping[str, Json] = extra or {}

    def body(self) -> dict[str, Json]:
        """``{"error": {"code", "message", …}}``."""
        return {"error": {"code": self.code, "message": self.message, **self.extra}}


def invalid_request(message: str) -> ApiError:
    """400."""
    return ApiError("invalid_request", message)


def not_found(message: str = "Not found.") -> ApiError:
    """404, also for what belongs to another user."""
    return ApiError("not_found", message)
