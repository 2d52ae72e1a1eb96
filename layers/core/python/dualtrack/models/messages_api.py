"""The Messages API through the anthropic SDK, whoever serves it: an implementation of
`dualtrack.models.protocol.Model`.

The SDK does not retry (DESIGN 2.10): temporary errors raise `ModelUnavailable`, and the workflow retries; `ModelBusy`
if it has to wait first (dualtrack.models.busy); permanent errors raise `ModelRefused`.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx2

from dualtrack.chat_times import LEAST_CALL_SECONDS
from dualtrack.errors import DualtrackError, ModelBusy, ModelRefused, ModelUnavailable
from dualtrack.models.anthropic_sdk import anthropic
from dualtrack.models.busy import asked_seconds, busy_reason
from dualtrack.models.cache_word import FIELD, is_refused, not_asking
from dualtrack.models.protocol import ignore
from dualtrack.models.reading import Reading, thought_in
from dualtrack.models.refusals import is_of_content
from dualtrack.models.trouble import own_words
from dualtrack.models.turn import FirstByte, Usage
from dualtrack.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from anthropic.resources.messages import Messages
    from anthropic.types import Message

    from dualtrack.models.protocol import Form
    from dualtrack.models.turn import ModelReply

_STREAMING: Final = 200
_PASSING: Final = frozenset({408, 409, 429})
_TOO_LONG: Final = ("prompt is too long", "input is too long", "exceed context limit")
"""Messages of a 400 for length; the second is AWS's, the third that for prompt and ``max_tokens`` together."""
_BROKEN: Final = (
    anthropic.APIConnectionError, httpx2.HTTPError, json.JSONDecodeError, ValueError, RecursionError,
)  # fmt: skip


class MessagesClient(Protocol):
    """What the SDK's clients of all services have in common."""

    @property
    def messages(self) -> Messages: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Claude:
    """A client of the Messages API. ``asks_about_cache``: whether the service takes a question about its cache
    (`dualtrack.models.cache_word`); not any more once it has refused one."""

    client: MessagesClient
    asks_about_cache: bool = False

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """A model call, as `dualtrack.models.protocol.Model.stream`. A question about the cache never fails a call."""
        if not self.asks_about_cache:
            request = not_asking(request)
        try:
            return self._stream(request, on_text, seconds, on_first, on_thought)
        except ModelRefused as refused:
            if FIELD not in request or not is_refused(refused):
                raise
        self.asks_about_cache = False
        return self._stream(not_asking(request), on_text, seconds, on_first, on_thought)

    def _stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float,
        on_first: Callable[[FirstByte], None],
        on_thought: Callable[[str], None],
    ) -> ModelReply:
        """A stream that ends without a stop reason, or is silent for two minutes, counts as interrupted. One that still
        writes after ``seconds`` is cut. An error of content is a refusal, with what came before it.
        """
        asked_at = time.monotonic()
        deadline, first_at = asked_at + seconds, 0.0
        reading = Reading(request)
        with (
            errors_of_the_service(),
            _declining(reading),
            self.client.messages.create(
                **request, stream=True, timeout=_timeout(min(seconds, LEAST_CALL_SECONDS))
            ) as events,
        ):
            for event in events:
                first_at = first_at or (time.monotonic() if event.type == "content_block_delta" else 0.0)
                if text := reading.take(event):
                    on_text(text)
                elif thought := thought_in(event):
                    on_thought(thought)
                if event.type == "message_start":
                    on_first(FirstByte(event.message.model or "", reading.usage))
                if time.monotonic() > deadline and reading.stop_reason is None:
                    reading.cut()
                    break
        if reading.stop_reason is None:
            raise ModelUnavailable("The model's stream was cut.")
        return replace(reading.reply(), first_seconds=round(first_at - asked_at, 3) if first_at else None)

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        """The text of a short answer, and its tokens; no text if the service declines it."""
        answer = self.message(request, seconds)
        if answer.stop_reason == "refusal":
            return "", usage_of(answer)
        text = "".join(block.text for block in answer.content if block.type == "text")
        return clean(text), usage_of(answer)

    def message(self, request: Mapping[str, Any], seconds: float) -> Message:
        """The answer of a call that is not streamed."""
        with errors_of_the_service():
            answer: Message = self.client.messages.create(**request, timeout=_timeout(seconds))
        return answer

    def parse(self, request: Mapping[str, Any], form: type[Form], seconds: float) -> tuple[Form, Usage]:
        """An answer in the requested form (``output_config.format`` on the wire), and its tokens."""
        with errors_of_the_service():
            answer = self.client.messages.parse(**request, output_format=form, timeout=_timeout(seconds))
        if answer.stop_reason != "end_turn" or answer.parsed_output is None:
            raise ModelUnavailable(f"The model stopped with {answer.stop_reason}.")
        return answer.parsed_output, usage_of(answer)


def usage_of(answer: Message) -> Usage:
    """The tokens of an answer that was not streamed."""
    usage = answer.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(usage.input_tokens, usage.output_tokens, read, written)


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=10.0)


@contextmanager
def errors_of_the_service() -> Iterator[None]:
    """Translate the errors of the SDK, the connection and the reading of an answer into those of the protocol."""
    try:
        yield
    except anthropic.APIStatusError as error:
        raise _status_error(error) from error
    except _BROKEN as error:
        raise ModelUnavailable(_broken_off(error)) from error


@contextmanager
def _declining(reading: Reading) -> Iterator[None]:
    """Take an error of content as the end of the answer: the same request would be refused again."""
    try:
        yield
    except anthropic.APIStatusError as error:
        said = own_words(_message(error))
        if _is_too_long(error) or not is_of_content(error.status_code, error.type or "", said):
            raise
        reading.decline(said)


def _status_error(error: anthropic.APIStatusError) -> DualtrackError:
    """The protocol's error. An error event inside a stream has the stream's status 200: the service failed, unless it
    calls the request invalid, which no further try can change."""
    status = error.status_code
    if status == _STREAMING and error.type == "invalid_request_error":
        status = 400
    if status in _PASSING or status >= 500 or status < 400:
        text = f"The model's service answered {status}."
        retry_after = asked_seconds(error.response.headers, time.time())
        reason = busy_reason(status, error.type or "", retry_after)
        return ModelBusy(text, reason, retry_after or 0.0) if reason else ModelUnavailable(text)
    text = f"The model's service refused the request ({status} {error.type or ''})."
    return ModelRefused(
        text, status, kind=error.type or "", said=own_words(_message(error)), too_long=_is_too_long(error)
    )


def _message(error: anthropic.APIStatusError) -> object:
    """The service's own message: Anthropic's is in ``error.message``, AWS's in ``message`` or ``Message``."""
    body: Any = error.body
    message = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(message, dict):
        message = message.get("message") or message.get("Message")
    return message or error.message


def _broken_off(error: Exception) -> str:
    """Why there is no answer: no connection, or the answer was interrupted."""
    if isinstance(error, anthropic.APIConnectionError) and isinstance(error.__cause__, httpx2.ConnectError):
        url = error.request.url
        return f"No connection to {url.scheme}://{url.netloc.decode()}: {error.__cause__}."
    return f"The model's answer broke off: {type(error).__name__}."


def _is_too_long(error: anthropic.APIStatusError) -> bool:
    """Whether the request is too long: a 413 (`request_too_large`) always says so, a 400 only in its message."""
    said = str(error.body or error.message).lower()
    return error.status_code == 413 or any(words in said for words in _TOO_LONG)
