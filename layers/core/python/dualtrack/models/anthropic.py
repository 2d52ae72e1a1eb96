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

from dualtrack.errors import DualtrackError, ModelUnavailable
from dualtrack.models.anthropic_sdk import Anthropic, anthropic
from dualtrack.models.reading import Reading
from dualtrack.runtime.secrets import NOT_SET
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anthropic.types import Message as Answer

    from dualtrack.models.turn import ModelReply

CALL_SECONDS: Final = 120.0
_PASSING: Final = frozenset({408, 409, 429})
_BROKEN: Final = (anthropic.APIConnectionError, httpx2.HTTPError, json.JSONDecodeError, ValueError)


class ModelRefused(DualtrackError):
    """Claude's API will not take this request (4xx): a retry cannot mend it. ``status`` is what it answered."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


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
        reading = Reading()
        try:
            with self.client.messages.create(**request, stream=True, timeout=_timeout(seconds)) as events:
                for event in events:
                    if text := reading.take(event):
                        on_text(text)
                    if time.monotonic() > deadline:
                        raise ModelUnavailable(f"The model did not finish within {seconds:.0f} seconds.")
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except _BROKEN as error:
            raise ModelUnavailable(f"The model's stream broke off: {type(error).__name__}") from error
        if reading.stop_reason is None:
            raise ModelUnavailable("The model's stream was cut.")
        return reading.reply()

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, int]:
        """The text of a short answer, and the tokens it took (in and out)."""
        try:
            answer: Answer = self.client.messages.create(**request, timeout=_timeout(seconds))
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except _BROKEN as error:
            raise ModelUnavailable(f"The model could not be reached: {type(error).__name__}") from error
        usage = answer.usage
        text = "".join(block.text for block in answer.content if block.type == "text")
        cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        return clean(text), usage.input_tokens + cached + usage.output_tokens


@cache
def connect(base_url: str, api_key: str) -> Claude:
    """A client for the base URL, one per key; nothing is requested yet.

    A server of one's own may need no key, but the SDK takes no empty one.
    """
    return Claude(Anthropic(base_url=base_url, api_key=api_key or NOT_SET, max_retries=0))


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=10.0)


def _status_error(error: anthropic.APIStatusError) -> DualtrackError:
    """An error event inside a stream carries the stream's status 200: it is the service's trouble."""
    status = error.status_code
    if status in _PASSING or status >= 500 or status < 400:
        return ModelUnavailable(f"The model's service answered {status}.")
    return ModelRefused(f"The model's service refused the request ({status} {error.type or ''}).", status)
