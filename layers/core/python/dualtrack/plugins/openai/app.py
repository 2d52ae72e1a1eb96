"""The routes of OpenAI's API (CONTRACT 10), over admission and the event log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from dualtrack.errors import ApiError, not_found
from dualtrack.plugins.openai import declared
from dualtrack.plugins.openai.completions import DONE, Completion, error_line, model_json, models_json
from dualtrack.plugins.openai.prompt import json_object, prompt_of, refuse_unknown_model
from dualtrack.plugins.openai.refusals import body_of, other_method, refused_as
from dualtrack.plugins.openai.responses_app import ResponsesDoor
from dualtrack.plugins.openai.serving import (
    DID_NOT_COME,
    Serving,
    is_retry,
    read_body,
    refusing,
    transcript_of,
)
from dualtrack.plugins.openai.transcript import Diverged, End, FailedChat
from dualtrack.plugins.openai.utility import is_task, task_of
from dualtrack.streaming.follow_events import HEARTBEAT
from dualtrack.streaming.leased_stream import BrokenOff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from dualtrack.api.streamed import StreamedRoute
    from dualtrack.plugins.openai.prompt import Prompt
    from dualtrack.plugins.openai.serving import Serve
    from dualtrack.plugins.openai.transcript import AnswerTranscript, Piece
    from dualtrack.storage.chats import Chat


_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True)
class OpenAIDoor(Serving):
    """The routes."""

    def routes(self) -> Router:
        """Everything below `declared.PATH`."""
        responses = ResponsesDoor(self)
        served: dict[StreamedRoute, Serve] = {
            declared.MODELS: self.models,
            declared.MODEL: self.model,
            declared.COMPLETE: self.complete,
            declared.RESPOND: responses.create,
            declared.RESPONSE: responses.show,
            declared.CANCEL: responses.cancel,
        }
        routes = [
            Route(route.path, refusing(route.path, serve), methods=[route.method])
            for route, serve in served.items()
        ]
        others = [Route(route.path, _other(route.method), methods=_METHODS) for route in served]
        return Router([*routes, *others, Route("/{rest:path}", refusing("", _nothing), methods=_METHODS)])

    async def models(self, request: Request) -> Response:
        """``GET /models``: the profiles that the caller may use."""
        identity = await self.caller(request, declared.MODELS)
        return JSONResponse(models_json(self.admission.models(identity)))

    async def model(self, request: Request) -> Response:
        """``GET /models/{model}``."""
        identity = await self.caller(request, declared.MODEL)
        name = request.path_params["model"]
        refuse_unknown_model(name, self.admission.models(identity))
        return JSONResponse(model_json(name))

    async def complete(self, request: Request) -> Response:
        """``POST /chat/completions``."""
        identity = await self.caller(request, declared.COMPLETE)
        raw = await read_body(request)
        prompt = self._prompt(request, json_object(raw))
        async with self.leased(identity.user) as lease:
            named = request.headers.get(declared.CONVERSATION, "")
            admit = partial(self.admission.admit, identity, prompt, raw, named, is_retry=is_retry(request))
            admitted = await anyio.to_thread.run_sync(admit)
            chat = admitted.chat
            request.state.chat_id = chat.chat_id
            answer = _Answer(self, chat, admitted.after, prompt)
            if prompt.is_streamed:
                return self.streamed(answer.chunks(), chat, lease)
            return await self.plain(answer.whole(), chat, lease)

    def _prompt(self, request: Request, body: dict[str, Any]) -> Prompt:
        named = (request.headers.get(name, "") for name in (declared.TASK, *self.task_headers))
        prompt = prompt_of(body)
        return task_of(prompt) if is_task(body, named) else self.with_foreign_id(prompt, request)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one request: what the chat says behind the turn ``after``."""

    door: OpenAIDoor
    chat: Chat
    after: int
    prompt: Prompt

    @property
    def _completion(self) -> Completion:
        return Completion(self.chat, self.prompt.model)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Chunks as the text comes."""
        completion = self._completion
        transcript = transcript_of(self.chat, self.after, is_streamed=True)
        yield completion.first()
        async for piece in self._pieces_or_failure(transcript):
            if piece is None:
                yield HEARTBEAT
            elif isinstance(piece, FailedChat):
                yield error_line(body_of(ApiError(refused_as(piece.code), piece.message)))
                raise BrokenOff
            elif isinstance(piece, End):
                usage = await self._ended(transcript, piece)
                yield completion.end(piece, transcript.refusal)
                if self.prompt.with_usage:
                    yield completion.usage(usage)
                yield DONE
            else:
                yield completion.piece(piece)

    async def whole(self) -> dict[str, Any]:
        """The whole answer. Raises `ApiError`."""
        transcript = transcript_of(self.chat, self.after, is_streamed=False)
        try:
            async for piece in self._pieces(transcript):
                if isinstance(piece, FailedChat):
                    raise ApiError(refused_as(piece.code), piece.message)
                if isinstance(piece, End):
                    usage = await self._ended(transcript, piece)
                    return self._completion.whole(transcript, piece.stop, usage)
        except BrokenOff:
            pass
        raise ApiError("unavailable", DID_NOT_COME)

    async def _pieces_or_failure(self, transcript: AnswerTranscript) -> AsyncIterator[Piece | None]:
        """The pieces; a stream that cannot be completed says so before it breaks off."""
        try:
            async for piece in self._pieces(transcript):
                yield piece
        except BrokenOff:
            yield FailedChat("unavailable", DID_NOT_COME)

    async def _pieces(self, transcript: AnswerTranscript) -> AsyncIterator[Piece | None]:
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
                    if isinstance(piece, End | FailedChat):
                        return
        raise BrokenOff

    async def _ended(self, transcript: AnswerTranscript, end: End) -> dict[str, Any]:
        """The answer's usage. The exchange is noted before the client has it: its next request finds it."""
        return await anyio.to_thread.run_sync(self._note, transcript.said, end)

    def _note(self, said: str, end: End) -> dict[str, Any]:
        admission = self.door.admission
        if end.stop != "tool_calls":  # those calls' ids name the chat
            admission.note(self.chat, said, self.prompt)
        return admission.usage(admission.now(self.chat), self.after, end.turn)


def _other(method: str) -> Serve:
    async def served(request: Request) -> Response:  # noqa: ARG001
        return other_method(method)

    return served


async def _nothing(request: Request) -> Response:  # noqa: ARG001
    raise not_found("This part of OpenAI's API is not served here.")
