"""How large a request may be (CONTRACT 4). Lambda's limit is that of the *event*, in which the body is a string with
escapes, beside the headers (AWS Lambda Developer Guide, "Lambda quotas"); of answers likewise."""

from __future__ import annotations

from typing import Any, Final

EVENT_BYTES: Final = 6_291_456
"""Of an event, and of an answer that is not streamed."""

TOO_LARGE: Final = (
    "The request is too large: 6 MB are taken, its escapes counted. Send fewer or smaller files, or files of up to 50 MB "
    "by reference (POST /v1/uploads, then POST /v1/chats with upload_id), and of a conversation that is here only what "
    "is new, under its name (conversation_id, previous_response_id or the header X-Dualtrack-Conversation)."
)

TOO_LARGE_BODY: Final[dict[str, Any]] = {
    "error": {"code": "too_large", "message": TOO_LARGE, "type": "invalid_request_error", "param": None}
}
"""In the contract's form, with the fields that clients of other forms read: the gateway has one answer for all."""
