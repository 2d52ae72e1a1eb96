"""The routes of OpenAI's API (CONTRACT 10), over admission and the event log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from dualtrack.api.route import OPENAI_PATH
from dualtrack.errors import ApiError, not_found
from dualtrack.openai.completions import DONE, Completion, error_line, models_json, usage_of
from dualtrack.openai.exchanges import Exchange, trail_of
from dualtrack.openai.prompt import json_object, prompt_of
from dualtrack.openai.refusals import body_of, headers_of, status_of
from dualtrack.openai.transcript import Diverged, End, Failed, Transcript
from dualtrack.profiles import all_profiles
from dualtrack.storage.leases import ANSWERS
from dualtrack.streaming.follow_events import HEARTBEAT
from dualtrack.streaming.leased_stream import HEADERS, BrokenOff, LeasedStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from dualtrack.api.identity import Identity
    from dualtrack.openai.admission import Admission
    from dualtrack.openai.prompt import Prompt
    from dualtrack.openai.transcript import Piece
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.leases import Lease
    from dualtrack.streaming.follow_events import EventReader
    from dualtrack.vocabulary import Scope

    Identify = Callable[[Request, tuple[Scope, ...]], Identity]
    Serve = Callable[[Request], Awaitable[Response]]

CONVERSATION: Final = "X-Dualtrack-Conversation"
"""The header that names a conversation, in requests and in answers."""

RETRIES: Final = "x-stainless-retry-count"
"""How often OpenAI's own clients have sent this request before."""

BODY_BYTES: Final = 10 * 1024 * 1024
"""The gateway's limit."""

SILENT_SECONDS: Final = 50.0
"""An answer that is not streamed says nothing for so long, so that its status is true; then CloudFront, which waits for
60 s, gets spaces, which JSON may begin with."""
_SPACES_EVERY: Final = 15.0


@dataclass(frozen=True, slots=True)
class OpenAIDoor:
    """The routes with what they need. ``reader`` follows a chat for as long as a stream may last."""

    admission: Admission
    reader: EventReader
    identify: Identify
    silent_seconds: float = SILENT_SECONDS

    def routes(self) -> Router:
        """Everything below `OPENAI_PATH`."""
        served: list[tuple[str, str, Serve]] = [
            ("GET", "/models", self.models),
            ("POST", "/chat/completions", self.complete),
        ]
        routes = [Route(path, _refusing(path, serve), methods=[method]) for method, path, serve in served]
        rest = Route("/{rest:path}", _refusing("", _nothing), methods=["GET", "POST", "DELETE"])
        return Router([*routes, rest])

    async def models(self, request: Request) -> Response:
        """``GET /models``: the profiles that the caller may use."""
        identity = await self._caller(request, ("chat", "read"))
        return JSONResponse(models_json(self.admission.models(identity)))

    async def complete(self, request: Request) -> Response:
        """``POST /chat/completions``."""
        identity = await self._caller(request, ("chat",))
        raw = await _read(request)
        prompt = prompt_of(json_object(raw))
        leases = self.admission.stores.leases
        lease = await anyio.to_thread.run_sync(leases.take, identity.user, ANSWERS)
        try:
            admit = partial(
                self.admission.admit,
                identity,
                prompt,
                raw,
                request.headers.get(CONVERSATION, ""),
                is_retry=_is_retry(request),
            )
            admitted = await anyio.to_thread.run_sync(admit)
            request.state.chat_id = admitted.chat.chat_id
            answer = _Answer(self, admitted.chat, admitted.after, prompt, lease)
            return await (answer.streamed() if prompt.is_streamed else answer.plain())
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(leases.free, lease)
            raise

    async def _caller(self, request: Request, scopes: tuple[Scope, ...]) -> Identity:
        identity = await anyio.to_thread.run_sync(self.identify, request, scopes)
        request.state.user = identity.user
        return identity


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one request: what the chat says behind the turn ``after``."""

    door: OpenAIDoor
    chat: Chat
    after: int
    prompt: Prompt
    lease: Lease

    @property
    def _completion(self) -> Completion:
        return Completion(self.chat, self.prompt.model)

    @property
    def _headers(self) -> dict[str, str]:
        return {**HEADERS, CONVERSATION: self.chat.conversation_id}

    def _transcript(self, *, is_streamed: bool) -> Transcript:
        profile = all_profiles().get(self.chat.profile)
        is_json = bool(self.chat.output) or (profile is not None and profile.output is not None)
        return Transcript(is_streamed, self.chat.chat_id, self.after, is_json)

    async def streamed(self) -> Response:
        """Chunks as the text comes."""
        leases = self.door.admission.stores.leases
        return LeasedStream(self._chunks(), leases, self.lease, headers=self._headers)

    async def plain(self) -> Response:
        """The whole answer with its true status; if it takes long, after spaces."""
        leases = self.door.admission.stores.leases
        whole = asyncio.create_task(self._whole())
        done, _ = await asyncio.wait({whole}, timeout=self.door.silent_seconds)
        if not done:
            return LeasedStream(_spaces(whole), leases, self.lease, "application/json", self._headers)
        body = whole.result()
        await anyio.to_thread.run_sync(leases.free, self.lease)
        return JSONResponse(body, headers=self._headers)

    async def _chunks(self) -> AsyncIterator[bytes]:
        completion, transcript = self._completion, self._transcript(is_streamed=True)
        yield completion.first()
        async for piece in self._pieces(transcript):
            if piece is None:
                yield HEARTBEAT
            elif isinstance(piece, Failed):
                yield error_line(body_of(ApiError(_code(piece), piece.message)))
                raise BrokenOff
            elif isinstance(piece, End):
                usage = await self._ended(transcript, piece)
                yield completion.end(piece, transcript.refusal)
                if self.prompt.with_usage:
                    yield completion.usage(usage)
                yield DONE
            else:
                yield completion.piece(piece)

    async def _whole(self) -> dict[str, Any]:
        transcript = self._transcript(is_streamed=False)
        try:
            async for piece in self._pieces(transcript):
                if isinstance(piece, Failed):
                    raise ApiError(_code(piece), piece.message)
                if isinstance(piece, End):
                    usage = await self._ended(transcript, piece)
                    return self._completion.whole(transcript, piece.stop, usage)
        except BrokenOff:
            pass
        raise ApiError("unavailable", "The answer did not come. Try again: it may still be written.")

    async def _pieces(self, transcript: Transcript) -> AsyncIterator[Piece | None]:
        """The pieces of the answer up to its end, and None where nothing has come for a while. Raises `BrokenOff`."""
        async for events in self.door.reader.batches(self.chat):
            if not events:
                yield None
            for event in events:
                try:
                    pieces = transcript.take(event, is_last=event is events[-1])
                except Diverged:
                    raise BrokenOff from None
                for piece in pieces:
                    yield piece
                    if isinstance(piece, End | Failed):
                        return
        raise BrokenOff

    async def _ended(self, transcript: Transcript, end: End) -> dict[str, Any]:
        """The answer's usage. The exchange is noted before the client has it: its next request finds it."""
        return await anyio.to_thread.run_sync(self._note, transcript.said, end)

    def _note(self, said: str, end: End) -> dict[str, Any]:
        admission, chat = self.door.admission, self.chat
        if end.stop != "tool_calls":  # those calls' ids name the chat
            exchange, trail = Exchange(self.prompt.message, said), trail_of(self.prompt.exchanges)
            admission.index.note(chat, exchange.digest, trail, admission.stores.clock())
        ended = admission.stores.chats.load(chat.user, chat.chat_id) or chat
        if not self.after and ended.turn <= end.turn:
            return usage_of(ended, ())
        _, turns = admission.stores.chats.load_with_turns(chat.user, chat.chat_id) or (None, ())
        return usage_of(ended, (turn for turn in turns if not self.after < turn.number <= end.turn))


async def _spaces(whole: asyncio.Task[dict[str, Any]]) -> AsyncIterator[bytes]:
    """Spaces until the answer is there. What fails now breaks the connection off: its status has been sent."""
    try:
        while True:
            yield b" "
            if (await asyncio.wait({whole}, timeout=_SPACES_EVERY))[0]:
                break
        try:
            yield json.dumps(whole.result()).encode()
        except ApiError:
            raise BrokenOff from None
    finally:
        whole.cancel()


def _refusing(path: str, serve: Serve) -> Serve:
    """The route with its refusals in OpenAI's form, and its path for the log."""

    async def served(request: Request) -> Response:
        if path:
            request.state.route = OPENAI_PATH + path
        try:
            return await serve(request)
        except ApiError as refusal:
            return JSONResponse(body_of(refusal), status_of(refusal), headers_of(refusal))

    return served


async def _nothing(request: Request) -> Response:  # noqa: ARG001
    raise not_found("This part of OpenAI's API is not served here.")


async def _read(request: Request) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > BODY_BYTES:
            raise ApiError("too_large", "The request is too large.")
        pieces.append(piece)
    return b"".join(pieces)


def _is_retry(request: Request) -> bool:
    return request.headers.get(RETRIES, "0").strip() not in ("", "0")


def _code(failed: Failed) -> str:
    """A code of the contract's errors: a busy model is for a client a service that is not available."""
    return failed.code if failed.code in ("internal", "timeout") else "unavailable"
