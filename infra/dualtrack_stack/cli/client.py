"""The HTTP API from a client's side (CONTRACT 4 and 5): calls, errors, and an event stream that resumes.

Errors are a `ClientError`: `CommandFailed` (an operation did not complete, such as a call to AWS or a check),
`Unreachable` (nothing answers at the address, or it is not a dualtrack stack) or `RequestRefused` (an error body of the
stack: status, code, message and its extra fields).
"""

from __future__ import annotations

import ipaddress
import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import httpx
from dualtrack.api.key_format import is_key
from dualtrack.api.route import KEY_PATH
from dualtrack.chat_times import LONGEST
from dualtrack.frozen import freeze, loads, thaw
from dualtrack.text import clean
from httpx_sse import SSEError, connect_sse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from dualtrack.answers import Chat, Details, StartedChat
    from dualtrack.frozen import JsonObject

TERMINAL: Final = frozenset({"done", "error"})
"""Events after which a chat's stream ends."""

_TIMEOUT: Final = httpx.Timeout(35, connect=5)
# The server sends a comment every 15 s: three missing ones are a dead connection.
_STREAM_TIMEOUT: Final = httpx.Timeout(10, connect=5, read=45)
_START_ATTEMPTS: Final = 3
_STREAM_FAILURES: Final = 8
# A stream that is silent for longer than any chat lasts will not end.
_STALLED_SECONDS: Final = LONGEST.chat + 60
_CROWDED: Final = "Too many event streams are open; this one continues when another closes."
_RETRY_STATUSES: Final = frozenset({429, 500, 502, 503, 504})


def _unicode(sent: Any) -> Any:
    """JSON with U+FFFD for what is no Unicode: a terminal's argument may be any bytes."""
    return json.loads(clean(json.dumps(sent, ensure_ascii=False)))


class ClientError(Exception):
    """A call has no result; the message says why."""


class Missing(ClientError):
    """A token, an extra, or the requested account is missing."""


class CommandFailed(ClientError):
    """An operation did not complete; the message says why, and what to do."""


class Unreachable(ClientError):
    """No dualtrack stack answers at this address (``url``, if the address is the problem)."""

    def __init__(self, message: str, url: str = "") -> None:
        super().__init__(message)
        self.url = url


class RequestRefused(ClientError):
    """The stack's own error: HTTP ``status``, ``code``, ``message``, and ``extra``: its other fields.

    ``grants``: the command that grants credits on this stack, if the caller may run it.
    """

    def __init__(self, status: int, code: str, message: str, extra: Details) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.extra = extra
        self.grants = ""


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """One event of a chat: ``id`` counts 1, 2, 3 … without gaps; ``data`` is frozen JSON."""

    id: int
    kind: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class AcceptedChat:
    """A chat that was accepted; ``message_id`` names its query, such as q7."""

    chat_id: str
    conversation_id: str
    message_id: str


class ApiClient:
    """One stack and one identity, by an ID token or an API key. ``url`` may end in a stage path, as API Gateway's own
    addresses do. Keys have a path of their own, which also stages without CloudFront have (docs/keys.md)."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self._sleep = sleep
        self._clock = clock
        headers = {"User-Agent": "dualtrack-cli", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._http = httpx.Client(
            base_url=url + KEY_PATH if is_key(token) else url,
            headers=headers,
            timeout=_TIMEOUT,
            # A proxy from the environment must not receive calls to this machine.
            trust_env=not is_loopback(url),
            # Without TLS there is nothing to verify, and loading the certificates takes 50 ms and more.
            verify=not url.startswith("http://"),
        )

    def __enter__(self) -> ApiClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The frozen JSON answer of one call; raises `RequestRefused` or `Unreachable`."""
        try:
            response = self._http.request(
                method,
                path,
                json=None if body is None else _unicode(thaw(body)),
                params=_unicode(dict(params)) if params else None,
                headers=headers,
            )
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        return self._answer(response)

    def start_chat(
        self,
        message: str | None,
        conversation_id: str | None = None,
        profile: str | None = None,
        attachments: Sequence[Mapping[str, str]] = (),
        schema: JsonObject | None = None,
    ) -> AcceptedChat:
        """POST /v1/chats; without a message the conversation's last answer goes on. If the response is lost, the
        request is repeated with the same idempotency key."""
        optional = {
            "conversation_id": conversation_id,
            "profile": profile,
            "attachments": attachments or None,
            "output": None if schema is None else {"schema": schema},
        }
        body: dict[str, Any] = {
            **({"continue": True} if message is None else {"message": message}),
            **{name: value for name, value in optional.items() if value is not None},
        }
        answer: StartedChat = self._post_once("/v1/chats", body)
        return AcceptedChat(answer["chat_id"], answer["conversation_id"], answer["message_id"])

    def fork(self, conversation_id: str, before: str) -> str:
        """POST …/fork; the id of the conversation that shares the queries before one."""
        path = f"/v1/conversations/{quote(conversation_id, safe='')}/fork"
        return str(self._post_once(path, {"before": before})["conversation_id"])

    def delete_conversation(self, conversation_id: str) -> None:
        """DELETE a conversation."""
        self.call("DELETE", f"/v1/conversations/{quote(conversation_id, safe='')}")

    def _post_once(self, path: str, body: JsonObject) -> Any:
        """The response; if it is lost, the request is repeated with the same idempotency key."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                return self.call("POST", path, body=body, headers=headers)
            except (Unreachable, RequestRefused) as error:
                if attempt == _START_ATTEMPTS or not _lost_on_the_way(error):
                    raise
                self._sleep(0.5 * attempt)
        raise AssertionError("the last attempt returns or raises")

    def chat(self, chat_id: str) -> Chat:
        """GET the chat object."""
        chat: Chat = self.call("GET", _chat_path(chat_id))
        return chat

    def cancel(self, chat_id: str) -> Chat:
        """DELETE the chat; the chat object, unchanged if it had ended before."""
        chat: Chat = self.call("DELETE", _chat_path(chat_id))
        return chat

    def decide(self, chat_id: str, decisions: Sequence[JsonObject]) -> Chat:
        """POST …/decisions; the chat object. The same decisions again change nothing."""
        chat: Chat = self.call("POST", f"{_chat_path(chat_id)}/decisions", body={"decisions": decisions})
        return chat

    def events(
        self, chat_id: str, after: int = 0, tell: Callable[[str], None] = lambda _: None
    ) -> Iterator[ChatEvent]:
        """Every event after number ``after``, each once and in order, up to and with the terminal one.

        A stream that closes or breaks is resumed with ``Last-Event-ID``. If the user has too many open
        streams, it waits until one closes and calls ``tell`` once. Raises `RequestRefused` for an error that a retry
        cannot fix and `Unreachable` if the stack stays unreachable.
        """
        last, failures, heard = after, 0, self._clock()
        problem: ClientError | None = None
        while True:
            previous, problem, before = problem, None, last
            try:
                for event in self._stream(chat_id, last):
                    last, heard = event.id, self._clock()
                    yield event
                    if event.kind in TERMINAL:
                        return
            except (httpx.TransportError, SSEError, ValueError) as error:
                problem = self._unreachable(error)
            except RequestRefused as error:
                if error.status not in _RETRY_STATUSES:
                    raise
                problem = error
            _tell_if_crowded(tell, problem, previous)
            failures = _failures(failures, problem) if last == before else 0
            if problem is not None and failures >= _STREAM_FAILURES:
                raise problem
            if self._clock() - heard > _STALLED_SECONDS:
                raise Unreachable(f"The events of {chat_id} stopped before the end.")
            if last == before:
                self._sleep(_pause(failures, problem))

    def _stream(self, chat_id: str, last: int) -> Iterator[ChatEvent]:
        headers = {"Last-Event-ID": str(last)} if last else {}
        path = f"{_chat_path(chat_id)}/events"
        with connect_sse(self._http, "GET", path, headers=headers, timeout=_STREAM_TIMEOUT) as source:
            if source.response.status_code != httpx.codes.OK:
                source.response.read()
                self._answer(source.response)
            for sse in source.iter_sse():
                if not sse.data:  # the decoder also reports blank lines after a comment or `retry:`
                    continue
                number = int(sse.id)
                if number <= last:
                    continue
                if number != last + 1:
                    raise ValueError(f"event {number} came after {last}")
                last = number
                yield ChatEvent(number, sse.event, loads(sse.data))

    def _answer(self, response: httpx.Response) -> Any:
        try:
            body: Any = loads(response.content) if response.content else None
        except ValueError:
            body = None
        if response.is_success and (body is not None or response.status_code == httpx.codes.NO_CONTENT):
            return body
        error: Any = body.get("error") if hasattr(body, "get") else None
        if not hasattr(error, "get") or not error.get("code"):
            raise Unreachable(
                f"{self.url} answers with HTTP {response.status_code}, but not as a dualtrack stack: "
                "is the URL right?"
            )
        extra: dict[str, Any] = {key: value for key, value in error.items() if key not in ("code", "message")}
        if "Retry-After" in response.headers:
            extra["retry_after"] = response.headers["Retry-After"]
        raise RequestRefused(
            response.status_code, str(error["code"]), str(error.get("message", "")), freeze(extra)
        )

    def _unreachable(self, error: Exception) -> Unreachable:
        refused = isinstance(error, httpx.ConnectError)
        reason = "nothing answers there" if refused else str(error) or type(error).__name__
        return Unreachable(f"Cannot reach {self.url}: {reason.rstrip('.')}.", self.url)


def is_loopback(url: str) -> bool:
    """Whether the address can only be this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _chat_path(chat_id: str) -> str:
    return f"/v1/chats/{quote(chat_id, safe='')}"


def _lost_on_the_way(error: ClientError) -> bool:
    """Whether the chat may have been accepted although its answer was lost, so that a retry makes sense."""
    if isinstance(error, RequestRefused):
        return error.status in (502, 503, 504)
    return isinstance(error.__cause__, httpx.TransportError) and not isinstance(
        error.__cause__, httpx.ConnectError
    )


def _is_crowded(problem: ClientError | None) -> bool:
    return isinstance(problem, RequestRefused) and problem.status == httpx.codes.TOO_MANY_REQUESTS


def _tell_if_crowded(
    tell: Callable[[str], None], problem: ClientError | None, previous: ClientError | None
) -> None:
    if _is_crowded(problem) and not _is_crowded(previous):
        tell(_CROWDED)


def _failures(before: int, problem: ClientError | None) -> int:
    """The number of failures in a row; waiting for a free stream is not a failure."""
    return before if problem is None or _is_crowded(problem) else before + 1


def _pause(failures: int, problem: ClientError | None) -> float:
    """Seconds before the stream is opened again: what the server asks for, else longer each time."""
    if isinstance(problem, RequestRefused) and str(problem.extra.get("retry_after", "")).isdigit():
        return min(30.0, float(problem.extra["retry_after"]))
    return min(5.0, 0.25 * 2.0**failures)
