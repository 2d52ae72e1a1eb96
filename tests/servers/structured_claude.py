"""A fake of the Messages API on loopback, structured output only: chooses the answer by the schema's properties."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request


@dataclass
class FakeClaude:
    """``reading``, ``choice`` and ``ranking`` are the answers to the three questions of the search; a Response in their
    place is sent unchanged. ``answers`` are sent first.
    """

    reading: Any = field(default_factory=lambda: {"library": "Twitter Ads API", "topic": "OAuth set-up"})
    choice: Any = field(default_factory=lambda: {"library_id": ""})
    ranking: Any = field(default_factory=lambda: {"ranking": [1, 2, 3, 4, 5, 6]})
    stop_reason: str = "end_turn"
    delay: float = 0.0
    usage: dict[str, int] = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    answers: deque[Any] = field(default_factory=deque)
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""

    def asked(self, name: str) -> list[str]:
        """The prompts of one of the questions, by a property of its schema."""
        return [
            body["messages"][0]["content"]
            for body in self.requests
            if name in body["output_config"]["format"]["schema"]["properties"]
        ]

    async def messages(self, request: Request) -> Response:
        await asyncio.sleep(self.delay)
        body = await request.json()
        if not request.headers.get("anthropic-version") or not request.headers.get("authorization"):
            return _error(401, "authentication_error")
        sampling = {"temperature", "top_p", "top_k"} & set(body)
        if sampling or not body.get("max_tokens") or body["messages"][0]["role"] != "user":
            return _error(400, "invalid_request_error")
        form = body["output_config"]["format"]
        if form["type"] != "json_schema" or form["schema"].get("additionalProperties") is not False:
            return _error(400, "invalid_request_error")
        self.requests.append(body)
        answer = self.answers.popleft() if self.answers else self._answer(form["schema"]["properties"])
        if isinstance(answer, Response):
            return answer
        if callable(answer):
            response: Response = await answer(request)
            return response
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return JSONResponse(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [{"type": "text", "text": text}],
                "stop_reason": self.stop_reason,
                "stop_sequence": None,
                "usage": self.usage,
            }
        )

    def _answer(self, properties: dict[str, Any]) -> Any:
        if "topic" in properties:
            return self.reading
        return self.choice if "library_id" in properties else self.ranking


def _error(status: int, kind: str) -> Response:
    return JSONResponse({"type": "error", "error": {"type": kind, "message": kind}}, status_code=status)


@contextmanager
def serve_structured_claude(control: FakeClaude) -> Iterator[FakeClaude]:
    """The control object with its ``url`` while it is served."""

    async def other(request: Request) -> Response:
        control.paths.append(request.url.path)
        return Response(status_code=404)

    routes = [
        Route("/v1/messages", control.messages, methods=["POST"]),
        Route("/{rest:path}", other, methods=["GET", "POST"]),
    ]
    with serve_in_thread(Starlette(routes=routes)) as url:
        control.url = url
        yield control
