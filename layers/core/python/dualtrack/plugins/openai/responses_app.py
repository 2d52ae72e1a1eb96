"""The routes of responses (CONTRACT 10): made, read again, followed from any event, cancelled."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from starlette.responses import JSONResponse

from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.errors import ApiError, invalid_request, not_found
from dualtrack.plugins.openai.declared import CANCEL, CONVERSATION, RESPOND, RESPONSE
from dualtrack.plugins.openai.prompt import json_object
from dualtrack.plugins.openai.responses import ResponseStream, failure, kept_response, line
from dualtrack.plugins.openai.responses_prompt import chat_of_response, requested_of
from dualtrack.plugins.openai.serving import DID_NOT_COME, headers_for, is_retry, read_body, transcript_of
from dualtrack.plugins.openai.transcript import End
from dualtrack.storage.chats import ENDED
from dualtrack.storage.event_log import read_events
from dualtrack.streaming.follow_events import HEARTBEAT
from dualtrack.streaming.leased_stream import BrokenOff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from dualtrack.api.identity import ApiCaller
    from dualtrack.plugins.openai.prompt import Prompt
    from dualtrack.plugins.openai.responses_prompt import ResponseRequest
    from dualtrack.plugins.openai.serving import Serving
    from dualtrack.storage.chats import Chat

_NUMBER: Final = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResponsesDoor:
    """The routes."""

    serving: Serving

    async def create(self, request: Request) -> Response:
        """``POST /responses``."""
        serving = self.serving
        identity = await serving.caller(request, RESPOND)
        raw = await read_body(request)
        asked = requested_of(json_object(raw))
        admit = partial(self._admit, identity, asked, raw, request)
        if asked.is_background and not asked.prompt.is_streamed:
            answer = await anyio.to_thread.run_sync(admit)
            return JSONResponse(answer.stream().body({}), headers=headers_for(answer.chat))
        async with serving.leased(identity.user) as lease:
            answer = await anyio.to_thread.run_sync(admit)
            if asked.prompt.is_streamed:
                return serving.streamed(answer.lines(), answer.chat, lease)
            return await serving.plain(answer.whole(), answer.chat, lease, _refusal)

    async def show(self, request: Request) -> Response:
        """``GET /responses/{response_id}``; with ``stream``, its events behind ``starting_after``."""
        identity = await self.serving.caller(request, RESPONSE)
        after = _after(request.query_params.get("starting_after"))
        answer = await anyio.to_thread.run_sync(self._found, identity, request)
        chat = answer.chat
        if request.query_params.get("stream") not in ("true", "True", "1"):
            body = await anyio.to_thread.run_sync(answer.so_far)
            return JSONResponse(body, headers=headers_for(chat))
        await anyio.to_thread.run_sync(self.serving.reader.chat, identity.user, chat.chat_id)
        async with self.serving.leased(identity.user) as lease:
            return self.serving.streamed(answer.lines(after), chat, lease)

    async def cancel(self, request: Request) -> Response:
        """``POST /responses/{response_id}/cancel``: an ended response stays as it is."""
        identity = await self.serving.caller(request, CANCEL)
        answer = await anyio.to_thread.run_sync(self._found, identity, request)
        admission = self.serving.admission
        cancel = partial(cancel_chat, admission.stores, admission.executions, answer.chat)
        await anyio.to_thread.run_sync(cancel)
        body = await anyio.to_thread.run_sync(answer.so_far)
        return JSONResponse(body, headers=headers_for(answer.chat))

    def _admit(self, identity: ApiCaller, asked: ResponseRequest, raw: bytes, request: Request) -> _Response:
        admitted = self.serving.admission.admit(
            identity,
            self.serving.with_foreign_id(asked.prompt, request),
            raw,
            asked.conversation_id or request.headers.get(CONVERSATION, ""),
            is_retry=is_retry(request),
            behind=asked.behind,
            echo=asked.echo,
        )
        request.state.chat_id = admitted.chat.chat_id
        return _Response(self.serving, admitted.chat, admitted.after, asked.echo, asked.prompt)

    def _found(self, identity: ApiCaller, request: Request) -> _Response:
        chat_id, after = chat_of_response(request.path_params["response_id"])
        request.state.chat_id = chat_id
        chats = self.serving.admission.stores.chats
        chat = chats.load(identity.user, chat_id)
        if chat is None or after > chat.turn:
            raise not_found("There is no such response.")
        identity.require_sight(chat.key_id)
        return _Response(self.serving, chat, after, chats.echo(chat, after))


@dataclass(frozen=True, slots=True)
class _Response:
    """One response: what the chat says behind the turn ``after``. ``echo``: as in `ResponseRequest`; ``prompt``: of the
    request that made it, if this is that request."""

    serving: Serving
    chat: Chat
    after: int
    echo: str
    prompt: Prompt | None = None

    def stream(self) -> ResponseStream:
        """Its events, from the first one on."""
        transcript = transcript_of(self.chat, self.after, is_streamed=True)
        return ResponseStream(self.chat, json.loads(self.echo) if self.echo else {}, transcript)

    async def lines(self, after: int = -1) -> AsyncIterator[bytes]:
        """Its events with a number over ``after``. A stream that cannot be completed breaks off; its client goes on
        behind the last event that it has."""
        stream, sent = self.stream(), after
        async for events in self._events(stream):
            fresh = [event for event in events if event["sequence_number"] > after]
            sent = fresh[-1]["sequence_number"] if fresh else sent
            if fresh or not events:
                yield b"".join(map(line, fresh)) or HEARTBEAT
        if not stream.over:
            yield line(failure(DID_NOT_COME, sent))
            raise BrokenOff

    async def whole(self) -> dict[str, Any]:
        """The response. Raises 503 if it did not come."""
        stream = self.stream()
        body: dict[str, Any] = {}
        async for events in self._events(stream):
            body = events[-1]["response"] if events and stream.over else body
        if not stream.over:
            raise ApiError("unavailable", DID_NOT_COME)
        return body

    async def _events(self, stream: ResponseStream) -> AsyncIterator[list[dict[str, Any]]]:
        """Its events as they come, the last one included; an empty list where nothing has come for a while."""
        yield stream.begin()
        async for stored in self.serving.reader.batches(self.chat):
            made = [each for event in stored for each in stream.take(event)]
            if stream.over:
                usage = await anyio.to_thread.run_sync(self._ended, stream)
                yield [*made, *stream.end(usage)]
                return
            if made or not stored:
                yield made

    def so_far(self) -> dict[str, Any]:
        """The response as far as it is written. Raises 404 for one within a chat whose events have expired."""
        serving, stream = self.serving, self.stream()
        events = read_events(serving.reader.client, serving.reader.table, self.chat.pk, consistent=True)
        for event in events:
            stream.take(event)
        if stream.over:
            return stream.body(self._ended(stream))
        chat = serving.admission.now(self.chat)
        if chat.status not in ENDED:
            return stream.body({})
        if self.after:
            raise not_found("There is no such response, or it has expired.")
        return kept_response(stream, chat, self._texts(), serving.admission.usage(chat, 0, chat.turn))

    def _ended(self, stream: ResponseStream) -> dict[str, Any]:
        """The response's usage. The exchange is noted before the client has it: its next request finds
        it."""
        admission, over, said = self.serving.admission, stream.over, stream.transcript.said
        chat = admission.now(self.chat)
        if not isinstance(over, End):
            return admission.usage(chat, self.after, chat.turn)
        if over.stop != "tool_calls":  # those calls' ids name the chat
            if self.prompt:
                admission.note(chat, said, self.prompt)
            else:
                admission.note_late(chat, said)
        return admission.usage(chat, self.after, over.turn)

    def _texts(self) -> list[str]:
        """What the turns of the chat have said, from its records."""
        chat, history = self.chat, self.serving.admission.stores.history
        records = history.query_records(chat.user, chat.conversation_id, chat.query)
        return [
            record.content[-record.said :] if record.said else record.content if is_answer else ""
            for record in records
            for is_answer in [record.record_id.endswith("-r")]
            if record.role == "assistant" and record.type == "message"
        ]


def _refusal(body: Mapping[str, Any]) -> ApiError | None:
    """What a response that failed is while its status can still be said: its client then tries again."""
    return ApiError("unavailable", body["error"]["message"]) if body["status"] == "failed" else None


def _after(text: str | None) -> int:
    if text is None:
        return -1
    if not _NUMBER.fullmatch(text):
        raise invalid_request("starting_after: a whole number.")
    return int(text)
