"""Claude through the anthropic SDK: one streamed turn, one short completion.

The SDK does not retry (DESIGN 2.10): what may pass raises `ModelUnavailable` and the workflow tries
again; what will not pass raises `ModelRefused`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import httpx2

from dualtrack.anthropic_sdk import Anthropic, anthropic
from dualtrack.errors import DualtrackError, ModelUnavailable
from dualtrack.frozen import freeze
from dualtrack.turn import ModelReply, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anthropic.types import ContentBlock
    from anthropic.types import Message as Answer

CALL_SECONDS: Final = 120.0
_PASSING: Final = frozenset({408, 409, 429})
_BROKEN: Final = (anthropic.APIConnectionError, httpx2.HTTPError, json.JSONDecodeError, ValueError)


class ModelRefused(DualtrackError):  # noqa: N818
    """Claude's API will not take this request (4xx): a retry cannot mend it."""


@dataclass(frozen=True, slots=True)
class Claude:
    """A client of the Messages API."""

    client: Anthropic

    def stream(
        self, request: Mapping[str, Any], on_text: Callable[[str], None], seconds: float = CALL_SECONDS
    ) -> ModelReply:
        """One model call. ``on_text`` gets every piece of text as it arrives and may raise to stop.

        A stream that ends without a stop reason is a cut one, and so is one that outlives ``seconds``.
        """
        deadline = time.monotonic() + seconds
        try:
            with self.client.messages.stream(**request, timeout=_timeout(seconds)) as stream:
                for event in stream:
                    if event.type == "text":
                        on_text(event.text)
                    if time.monotonic() > deadline:
                        raise ModelUnavailable(f"The model did not finish within {seconds:.0f} seconds.")
                answer = stream.get_final_message()
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except _BROKEN as error:
            raise ModelUnavailable(f"The model's stream broke off: {type(error).__name__}") from error
        except AssertionError as error:  # the SDK's answer to a stream that ends before its first event
            raise ModelUnavailable("The model's stream was empty.") from error
        if answer.stop_reason is None:
            raise ModelUnavailable("The model's stream was cut.")
        return _reply(answer)

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, int]:
        """The text of a short answer, and the tokens it took (in and out)."""
        try:
            answer: Answer = self.client.messages.create(**request, timeout=_timeout(seconds))
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except _BROKEN as error:
            raise ModelUnavailable(f"The model could not be reached: {type(error).__name__}") from error
        usage = _usage(answer)
        text = "".join(block.text for block in answer.content if block.type == "text")
        return (
            text,
            usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens,
        )


@cache
def connect(base_url: str, api_key: str) -> Claude:
    """A client for the base URL, one per key; nothing is requested yet."""
    return Claude(Anthropic(base_url=base_url, api_key=api_key, max_retries=0))


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=10.0)


def _status_error(error: anthropic.APIStatusError) -> DualtrackError:
    """An error event inside a stream carries the stream's status 200: it is the service's trouble."""
    status = error.status_code
    if status in _PASSING or status >= 500 or status < 400:
        return ModelUnavailable(f"The model's service answered {status}.")
    return ModelRefused(f"The model's service refused the request ({status} {error.type or ''}).")


def _reply(answer: Answer) -> ModelReply:
    blocks = [_sendable(block) for block in answer.content]
    kept = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    return ModelReply(freeze(kept), str(answer.stop_reason), _usage(answer))


def _sendable(block: ContentBlock) -> dict[str, Any]:
    """A block as it must be sent back: unchanged, without the fields that are not set."""
    plain = block.model_dump(mode="json", exclude_none=True)
    return plain | {"input": block.input} if block.type == "tool_use" else plain


def _usage(answer: Answer) -> Usage:
    usage = answer.usage
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_input_tokens or 0,
        cache_write_tokens=usage.cache_creation_input_tokens or 0,
    )
