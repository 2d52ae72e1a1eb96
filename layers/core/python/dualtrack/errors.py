"""All errors of the library: shared ones, defined here, and those that a single package uses, with their modules.

DualtrackError
├── ApiError                  a refusal: becomes {"error": {"code", "message", …}}, with a code of the contract
├── Transient                 a retry of the step may succeed: the workflow retries
│   ├── ModelUnavailable      Claude answered 408/409/429/5xx, or the stream was interrupted
│   │   └── ModelBusy         the service is overloaded or limits the rate: the chat waits
│   ├── Contended             a transaction met conflicts too often
│   ├── ResetUnfinished       chat/credit_reset.py: accounts are left for the next run
│   └── NotEmbedded           corpora/ingest.py: the embeddings' service did not answer
├── ModelRefused              the model's service refuses the request (4xx): a retry cannot succeed
├── Superseded                another run has overtaken this one: stop and write nothing
│   └── ChatClosed            the chat's event log has its terminal event
├── Degraded                  an optional stage of a search failed: it goes on without it
├── Gone                      what was to be read has just been deleted with its conversation
└── TookTooLong               work exceeded its time limit

Mismatch                      codec.py: a value does not have its declared type
WrongSettings                 checked_settings.py: settings that an operator has set are wrong
ConditionFailed               storage/dynamo.py: a condition of a write was false
MissingKey                    runtime/secrets.py: a key is not set; the message names the command that sets it
BrokenOff                     streaming/leased_stream.py: an answer's connection is broken off
Refused                       runtime/bounded_process.py: a reader does not take a file
Failed                        runtime/bounded_process.py: it ended otherwise, mostly by a limit
NotSent                       runtime/otlp.py: the collector did not accept the spans
_DeltaWriteError              streaming/delta_writer.py: events could not be written; the step fails
_TooManyError                 chat/pause_chat.py: too many chats wait for decisions, or one did too often
FileRefused                   corpora/kinds.py: a file of a job is refused
DocumentRefused               tools/courses/values.py: a document cannot become a course
BadIndex                      knowledge/array_file.py: bytes that are not an index of this format
BrokenImage                   image_structure.py: bytes that are no image of their type
TooMuchWork                   bounded_schema.py: a schema needs more work than any honest one
SearchError                   tools/documentation/values.py: the base of the documentation search's errors
└── Context7Error             Context7 refused the request, or cannot be reached
    ├── LibraryUnavailable    it has nothing usable for this library
    ├── TryLater              it limits the rate or is overloaded
    ├── LibraryMoved          tools/documentation/context7.py: the library has a new id
    └── _Unreadable           tools/documentation/library.py: a page is not of its declared type
GraphError                    tools/graph/engine.py: a query has failed
├── NoGraph                   no graph is loaded
├── QueryRefused              it is not a single read statement
├── QueryFailed               it is invalid
└── QueryTimedOut             it exceeded its time limit
BadArgumentError              tools/graph/names.py: what the model asked for does not exist
RowsTooLarge                  tools/graph/child.py: the rows exceed their size limit
ToolDeclarationError          tool_signature.py: a tool cannot be offered as it is declared
NoSchemaError                 tool_types.py: a parameter of a tool has a type without a schema
NoLegalFormError              tools/mcp/legal.py: a tool cannot be offered in any form
NoToken                       tools/mcp/execute.py: there is no token to call this server with
McpFailure                    tools/mcp/failures.py: a call or a listing failed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.answers import Details, Error
    from dualtrack.vocabulary import BusyReason


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

    ``seconds``: how long to wait, as the service asks; 0 if it
    does not say.
    """

    def __init__(self, text: str, reason: BusyReason, seconds: float = 0.0) -> None:
        super().__init__(text)
        self.reason = reason
        self.seconds = seconds


class ModelRefused(DualtrackError):
    """The model's service refuses this request (4xx): a retry cannot succeed. ``status`` is its answer's, ``kind`` its
    error's type, ``said`` its own words (`dualtrack.models.trouble.own_words`); ``too_long``: it says that the request
    is too long, in tokens or in bytes; ``callers``: what of the caller's it is about, in the caller's words."""

    def __init__(
        self,
        text: str,
        status: int,
        *,
        kind: str = "",
        said: str = "",
        too_long: bool = False,
        callers: str = "",
    ) -> None:
        super().__init__(text)
        self.status = status
        self.kind = kind
        self.said = said
        self.too_long = too_long
        self.callers = callers


class Contended(Transient):
    """A transaction still met conflicts or throttling after all its retries."""


class Superseded(DualtrackError):
    """Another run of this step has overtaken this one, or the chat has ended."""


class ChatClosed(Superseded):
    """The terminal event is written: nothing more can be appended."""


class TookTooLong(DualtrackError):
    """Work exceeded its time limit; it may still be running."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} took longer than {seconds:.0f} seconds.")
        self.seconds = seconds


class Degraded(DualtrackError):
    """An optional stage of a search (understanding, choosing, embeddings, rerank) failed. The message is a short reason
    for the log, without user text."""


class Gone(DualtrackError):
    """An item that this one points to, or depends on, was deleted after this one was read.

    The reader then answers 404 for a single record or chat, leaves it out of a list, or ends the step's chat.
    """


STATUS_OF_CODE: Final[Mapping[str, int]] = {
    "invalid_request": 400,
    "unauthorized": 401,
    "insufficient_credits": 402,
    "key_cap_reached": 402,
    "forbidden": 403,
    "not_found": 404,
    "conversation_busy": 409,
    "conversation_paused": 409,
    "nothing_to_continue": 409,
    "upload_missing": 409,
    "upload_used": 409,
    "already_decided": 409,
    "not_paused": 409,
    "expired": 410,
    "idempotency_conflict": 409,
    "name_taken": 409,
    "too_large": 413,
    "rate_limited": 429,
    "internal": 500,
    "unavailable": 503,
    "timeout": 504,
}


class ApiError(DualtrackError):
    """A refusal in the contract's form (CONTRACT 4). ``extra`` adds fields beside code and message."""

    def __init__(self, code: str, message: str, extra: Details | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS_OF_CODE[code]
        self.message = message
        self.extra: Details = extra or {}

    def body(self) -> Error:
        """``{"error": {"code", "message", …}}``."""
        return {"error": {"code": self.code, "message": self.message, **self.extra}}


def conversation_busy(chat_id: str, message: str = "") -> ApiError:
    """409 with the chat that is running, to be followed (``GET {url}/events``) or stopped (``DELETE {url}``)."""
    said = message or f"A chat is running in this conversation: {chat_id}."
    return ApiError("conversation_busy", said, {"chat_id": chat_id, "url": f"/v1/chats/{chat_id}"})


def conversation_paused(chat_id: str) -> ApiError:
    """409 with the chat that waits for decisions, to be decided or cancelled."""
    said = f"A chat in this conversation waits for decisions: {chat_id}. Decide, or cancel it (on_pause: cancel)."
    return ApiError("conversation_paused", said, {"chat_id": chat_id, "url": f"/v1/chats/{chat_id}"})


def invalid_request(message: str) -> ApiError:
    """400."""
    return ApiError("invalid_request", message)


NO_ROUTE: Final = "Not found. The API's paths begin with /v1; GET /openapi.json lists them."
"""What gateway and front say of a path that nobody serves."""


def not_found(message: str = "Not found.") -> ApiError:
    """404, also for what belongs to another user."""
    return ApiError("not_found", message)
