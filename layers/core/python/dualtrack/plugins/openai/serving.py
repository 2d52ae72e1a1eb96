"""What the routes of OpenAI's API share (CONTRACT 10): reading a request, refusals, an answer that may take long."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread
from starlette.responses import JSONResponse

from dualtrack.api.rate_limit import count_request
from dualtrack.api.sizes import EVENT_BYTES, TOO_LARGE
from dualtrack.chat_times import ANSWER_LEASE_SECONDS
from dualtrack.errors import ApiError
from dualtrack.plugins.openai.declared import CONVERSATION, PATH, RETRIES
from dualtrack.plugins.openai.prompt import foreign_id_of
from dualtrack.plugins.openai.refusals import answer_to
from dualtrack.plugins.openai.transcript import AnswerTranscript
from dualtrack.profiles import UTILITY, all_profiles
from dualtrack.storage.leases import LeaseLimit
from dualtrack.streaming.leased_stream import HEADERS, BrokenOff, LeasedStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from starlette.requests import Request
    from starlette.responses import Response

    from dualtrack.api.identity import ApiCaller
    from dualtrack.api.streamed import Identify, StreamedRoute
    from dualtrack.plugins.openai.admission import Admission
    from dualtrack.plugins.openai.prompt import Prompt
    from dualtrack.storage.chats import Chat
    from dualtrack.storage.leases import Lease
    from dualtrack.streaming.follow_events import EventReader

    Serve = Callable[[Request], Awaitable[Response]]

ANSWERS: Final = LeaseLimit(
    "ANSWERS", "answers by OpenAI's API", limit=10, seconds=ANSWER_LEASE_SECONDS, is_stream=True
)
"""What a user may hold open here."""

SILENT_SECONDS: Final = 50.0
"""An answer that is not streamed says nothing for so long, so that its status is true; then CloudFront, which waits for
60 s, gets spaces, which JSON may begin with."""
_SPACES_EVERY: Final = 15.0

DID_NOT_COME: Final = "The answer did not come. Try again: it may still be written."


@dataclass(frozen=True, slots=True)
class Serving:
    """What the routes need. ``reader`` follows a chat for as long as a stream may last."""

    admission: Admission
    reader: EventReader
    identify: Identify
    task_headers: tuple[str, ...] = ()
    conversation_headers: tuple[str, ...] = ()
    """Those in which clients name a conversation by an id of their own."""
    silent_seconds: float = SILENT_SECONDS

    async def caller(self, request: Request, route: StreamedRoute) -> ApiCaller:
        """Who asks, with one of this route's scopes; the request counts for the user."""
        identity = await anyio.to_thread.run_sync(self._counted, request, route)
        request.state.user = identity.user
        return identity

    def _counted(self, request: Request, route: StreamedRoute) -> ApiCaller:
        identity, stores = self.identify(request, route), self.admission.stores
        if identity.is_counted:
            count_request(stores.requests, identity.user, int(stores.clock()))
        return identity

    def with_foreign_id(self, prompt: Prompt, request: Request) -> Prompt:
        """The prompt with the conversation's id in the client's own words."""
        sent = (request.headers.get(name, "") for name in self.conversation_headers)
        return replace(prompt, foreign_id=foreign_id_of(sent))

    @contextlib.asynccontextmanager
    async def leased(self, user: str) -> AsyncIterator[Lease]:
        """A lease of an open answer, which whoever answers releases; here only if nobody comes to answer."""
        leases = self.admission.stores.leases
        lease = await anyio.to_thread.run_sync(leases.take, user, ANSWERS)
        try:
            yield lease
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(leases.free, lease)
            raise

    async def plain(
        self,
        answer: Coroutine[Any, Any, dict[str, Any]],
        chat: Chat,
        lease: Lease,
        refusal: Callable[[dict[str, Any]], ApiError | None] = lambda _: None,
    ) -> Response:
        """The whole answer with its true status; if it takes long, after spaces. ``refusal``: what an answer is refused
        with that can still be."""
        leases, headers = self.admission.stores.leases, headers_for(chat)
        whole = asyncio.create_task(answer)
        done, _ = await asyncio.wait({whole}, timeout=self.silent_seconds)
        if not done:
            return LeasedStream(_spaces(whole), leases, lease, "application/json", headers)
        body = whole.result()
        if refused := refusal(body):
            raise refused
        await anyio.to_thread.run_sync(leases.free, lease)
        return JSONResponse(body, headers=headers)

    def streamed(self, pieces: AsyncIterator[bytes], chat: Chat, lease: Lease) -> Response:
        """Server-sent events as they come."""
        return LeasedStream(pieces, self.admission.stores.leases, lease, headers=headers_for(chat))


def headers_for(chat: Chat) -> dict[str, str]:
    """The headers of an answer: its conversation's name above all, which a small task has no use for."""
    named = {} if chat.profile == UTILITY.name else {CONVERSATION: chat.conversation_id}
    return {**HEADERS, **named}


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


def refusing(path: str, serve: Serve) -> Serve:
    """The route with its refusals in OpenAI's form, and its path for the log."""

    async def served(request: Request) -> Response:
        if path:
            request.state.route = PATH + path
        try:
            return await serve(request)
        except ApiError as refusal:
            return answer_to(refusal)

    return served


async def read_body(request: Request) -> bytes:
    """The body. Raises 413."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > EVENT_BYTES:
            raise ApiError("too_large", TOO_LARGE)
        pieces.append(piece)
    return b"".join(pieces)


def is_retry(request: Request) -> bool:
    """Whether the client says that it has sent this request before."""
    return request.headers.get(RETRIES, "0").strip() not in ("", "0")


def transcript_of(chat: Chat, after: int, *, is_streamed: bool) -> AnswerTranscript:
    """The transcript of the answer behind the turn ``after``."""
    profile = all_profiles().get(chat.profile)
    is_json = bool(chat.output) or (profile is not None and profile.output is not None)
    return AnswerTranscript(is_streamed, chat.chat_id, after, is_json)
