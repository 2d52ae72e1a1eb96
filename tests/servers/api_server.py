"""A fake API server with scripted chats that implements CONTRACT 4 and 5, refusals included.

The test writes the events of the next chat; the server numbers them, cuts the stream where the script says, resumes
exactly by ``Last-Event-ID``, and records its requests.
"""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from dualtrack import answers
    from starlette.requests import Request

Refusal = tuple[int, dict[str, Any], dict[str, str]]
"""Status, the fields of ``error``, headers."""

AT = "2026-11-21T21:31:47.000Z"
CHAT_ID = "ch_00000000000000000000000001"
CONVERSATION_ID = "cv_00000000000000000000000001"
ADMIN_PATH = "/v1/admin/users/id-of-ada"
OWN_PATH = "/v1/admin/users/id-of-grace"
LOCAL_USER = "grace"
"""The user whose token is issued if no name is sent."""


@dataclass
class Script:
    """The server's behaviour, and the requests it got."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    """Event numbers after which a stream is closed, one per stream, in order."""
    torn: bool = False
    """Whether a cut stream sends half of the next event before it is closed."""
    hold_after: int | None = None
    """The stream stays open and silent after this event."""
    refusals: dict[str, list[Refusal | None]] = field(default_factory=dict)
    """``"POST /v1/chats"`` → one refusal per request, in order; None answers normally."""
    lost: list[str] = field(default_factory=list)
    """Requests whose answers are lost after the work was done, one per request."""
    mode: str | None = "offline"
    tokens: dict[str, str] = field(default_factory=lambda: {"token-of-user": "user"})
    """ID token → user name; ``/dev/token`` adds to it."""
    known: set[str] = field(default_factory=lambda: {LOCAL_USER, "operator"})
    """Names of existing users; others are created when their token is requested."""
    admins: set[str] = field(default_factory=set)
    balance: dict[str, Any] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    spending: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=list)

    conversations: list[answers.Conversation] = field(default_factory=list)
    """The conversations of the list, latest first; ``q`` filters by title, from its second page on."""
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Conversation → its records, two per page; long texts in pieces of 1,000 characters."""
    tools: dict[str, Any] = field(default_factory=lambda: {"tools": [], "profiles": []})
    cancelled: dict[str, Any] | None = None
    """What DELETE of the chat answers; a cancelled chat by default."""

    decided: list[dict[str, Any]] = field(default_factory=list)
    """The decisions that were taken: a chat goes on behind `paused` once each of its calls has one."""

    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    """(method, path with query, body)."""
    resumed_from: list[int] = field(default_factory=list)
    chats: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Idempotency key → body of the chat that it started."""
    streaming: threading.Event = field(default_factory=threading.Event)
    """Set while a stream is held open."""

    def asked(self, method: str, path: str) -> list[Any]:
        """The bodies of the requests of this method to this path."""
        return [body for seen, where, body in self.requests if (seen, where) == (method, path)]

    def open_calls(self, event: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of an event `paused` that nobody has decided on."""
        decided = {decision["id"] for decision in self.decided}
        return (
            [call for call in event[1]["calls"] if call["id"] not in decided] if event[0] == "paused" else []
        )

    def chat(self) -> dict[str, Any]:
        """The chat object: that of the pause, of the terminal event, or a failed one."""
        if calls := next((calls for calls in map(self.open_calls, self.events) if calls), []):
            pause = {"calls": calls, "expires_at": "2026-11-28T21:31:47.000Z"}
            return chat_object(status="paused", stop=None, response=None, pause=pause)
        kind, data = self.events[-1]
        return data if kind == "done" else chat_object(status="failed", stop=None, response=None)


def chat_object(**changed: Any) -> Any:
    """A chat object of CONTRACT 4 with all fields."""
    chat: answers.Chat = {
        "chat_id": CHAT_ID,
        "conversation_id": CONVERSATION_ID,
        "message_id": "q1",
        "profile": "assistant",
        "status": "done",
        "stop": "complete",
        "response": "Use **OAuth 2.0**.",
        "output": None,
        "summary": "OAuth.",
        "summary_form": "note",
        "summary_made": True,
        "sources": [
            {"title": "Auth guide", "url": "https://docs.example/auth"},
            {"title": "Earlier", "record_id": "q1-r"},
        ],
        "tool_calls": [
            {
                "id": "q1-t1",
                "tool": "retrieve_documentation",
                "input": {},
                "is_error": False,
                "seconds": 1.2,
                "turn": 1,
                "status": "done",
            }
        ],
        "turns": 2,
        "credits_used": 15,
        "credits_remaining": 1035,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "summary_tokens": 3,
        },
        "memory": {
            "dollars": 0.0012,
            "full_history_dollars": 0.0048,
            "conversation_dollars": 0.0012,
            "conversation_full_history_dollars": 0.0048,
            "estimated": True,
            "beyond_window": False,
            "summaries_due": False,
        },
        "fictional": False,
        "created_at": AT,
        "ended_at": "2026-11-21T21:31:53.400Z",
    }
    return {**chat, **changed}


def conversation(conversation_id: str, title: str = "How?") -> answers.Conversation:
    """A conversation of CONTRACT 4."""
    return {
        "conversation_id": conversation_id,
        "title": title,
        "profile": "assistant",
        "created_at": AT,
        "updated_at": AT,
        "listed_at": AT,
        "queries": 1,
        "allowed": [],
    }


def stopped_chat(response: str = "I will look it up.") -> Any:
    """The chat object of a cancelled chat, with its partial text."""
    return chat_object(status="cancelled", stop="cancelled", response=response, credits_used=5)


def _fork(parent: str) -> dict[str, Any]:
    return {
        "conversation_id": f"{parent}_fork",
        "title": "",
        "profile": "assistant",
        "created_at": AT,
        "updated_at": AT,
        "listed_at": AT,
        "queries": 6,
        "forked_from": parent,
        "forked_before": "q7",
    }


def answered(response: str = "Use **OAuth 2.0**.", **changed: Any) -> list[tuple[str, dict[str, Any]]]:
    """The events of a chat with one tool and an answer."""
    call = {"id": "q1-t1", "tool": "retrieve_documentation"}
    return [
        ("record", {"record_id": "q1", "role": "user", "type": "message"}),
        ("turn", {"turn": 1, "max_turns": 15, "final": False}),
        ("delta", {"turn": 1, "text": "I will look "}),
        ("delta", {"turn": 1, "text": "it up."}),
        ("tool_calls_start", {"turn": 1, "calls": [{**call, "input": {"query": "OAuth"}}]}),
        ("tool_result", {**call, "is_error": False, "seconds": 1.2, "preview": "…"}),
        ("turn", {"turn": 2, "max_turns": 15, "final": False}),
        ("delta", {"turn": 2, "text": response}),
        ("credits", {"used": 15, "held": 0, "available": 35}),
        ("answer", {"response": response, "sources": [], "stop": "complete", "turns": 2}),
        ("done", chat_object(response=response, **changed)),
    ]


def waiting(*calls: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The events of a chat that waits for these calls, then goes on and answers."""
    outcomes = [{"id": call["id"], "outcome": "approved"} for call in calls]
    return [
        *answered()[:4],
        ("paused", {"turn": 1, "calls": [*calls], "expires_at": "2026-11-28T21:31:47.000Z"}),
        ("resumed", {"turn": 1, "by": "user", "decisions": outcomes}),
        *answered()[6:],
    ]


def asks(tool: str, number: int = 1, /, kind: str = "approval", **arguments: Any) -> dict[str, Any]:
    """A call that waits."""
    return {"id": f"q1-t{number}", "tool": tool, "input": arguments, "kind": kind}


@contextmanager
def api_server(script: Script) -> Iterator[str]:
    """Serve the script on a free loopback port; the base URL."""
    with serve_in_thread(_app(script)) as url:
        yield url


def _app(script: Script) -> Any:
    methods = ["GET", "POST", "PUT", "DELETE"]
    return Starlette(routes=[Route("/{path:path}", _Server(script).handle, methods=methods)])


class _Server:
    def __init__(self, script: Script) -> None:
        self.script = script

    async def handle(self, request: Request) -> Response:
        """Handle any request: record it, refuse it as scripted or as the contract says, otherwise answer it."""
        raw = await request.body()
        body = json.loads(raw) if raw else None
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self.script.requests.append((request.method, path, body))
        scripted = self.script.refusals.get(f"{request.method} {request.url.path}")
        refusal = scripted.pop(0) if scripted else None
        if refusal:
            status, error, headers = refusal
            return JSONResponse({"error": error}, status, headers)
        answer = self._answer(request, body)
        if self.script.lost and self.script.lost[0] == f"{request.method} {request.url.path}":
            self.script.lost.pop(0)
            return StreamingResponse(_nothing(), headers={"content-length": "100"})
        return answer

    def _answer(self, request: Request, body: Any) -> Response:
        path = request.url.path
        if path == "/health":
            return JSONResponse({"status": "ok"})
        if path.startswith("/dev/") and self.script.mode is not None:
            return self._dev(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = self.script.tokens.get(token) if scheme == "Bearer" else None
        if user is None:
            return _refuse(401, "unauthorized", "A valid token is needed.")
        if path.startswith("/v1/admin/") and user not in self.script.admins:
            return _refuse(403, "forbidden", "Only for the group admin.")
        return self._v1(request, body)

    def _dev(self, request: Request) -> Response:
        if request.url.path == "/dev/status":
            return JSONResponse({"mode": self.script.mode})
        user = request.query_params.get("user", LOCAL_USER)
        if request.query_params.get("admin") == "1":
            self.script.admins.add(user)
        token = _token(user)
        created = user not in {*self.script.tokens.values(), *self.script.known}
        self.script.tokens[token] = user
        return JSONResponse({"token": token, "user_id": f"id-of-{user}", "created": created})

    def _v1(self, request: Request, body: Any) -> Response:
        method, path = request.method, request.url.path
        chat = f"/v1/chats/{CHAT_ID}"
        known: dict[tuple[str, str], Callable[[], Response]] = {
            ("POST", "/v1/chats"): lambda: self._start(request, body),
            ("POST", "/v1/conversations/cv_00000000000000000000000009/fork"): lambda: JSONResponse(
                _fork("cv_00000000000000000000000009"), 201
            ),
            ("DELETE", "/v1/conversations/cv_00000000000000000000000009_fork"): lambda: Response(
                status_code=204
            ),
            ("GET", chat): lambda: JSONResponse(self.script.chat()),
            ("DELETE", chat): lambda: JSONResponse(self.script.cancelled or stopped_chat()),
            ("POST", f"{chat}/decisions"): lambda: self._decide(body),
            ("GET", "/v1/pauses"): lambda: JSONResponse({"pauses": self._pauses()}),
            ("GET", f"{chat}/events"): lambda: self._events(request),
            ("GET", "/v1/credits/ledger"): lambda: JSONResponse({"entries": self.script.ledger}),
            ("GET", "/v1/credits"): lambda: JSONResponse(self.script.balance),
            ("GET", "/v1/credits/spending"): lambda: JSONResponse(self.script.spending),
            ("GET", "/v1/keys"): lambda: JSONResponse({"keys": self.script.keys}),
            ("GET", f"{ADMIN_PATH}/credits"): lambda: JSONResponse(self.script.balance),
            ("GET", f"{ADMIN_PATH}/spending"): lambda: JSONResponse(self.script.spending),
            ("GET", f"{OWN_PATH}/credits"): lambda: JSONResponse(self.script.balance),
            ("POST", f"{ADMIN_PATH}/grants"): lambda: _if_exactly(body, {"credits", "reason", "grant_id"}),
            ("POST", f"{OWN_PATH}/grants"): lambda: _if_exactly(body, {"credits", "reason", "grant_id"}),
            ("GET", "/v1/tools"): lambda: JSONResponse(self.script.tools),
            ("POST", "/v1/admin/tools/docs/accept"): lambda: self._accept(body),
            ("GET", "/v1/conversations"): lambda: self._listed(request),
            ("PUT", f"{ADMIN_PATH}/plan"): lambda: _if_exactly(body, {"plan"}),
            ("DELETE", ADMIN_PATH): lambda: JSONResponse({"status": "erasing"}, 202),
        }
        answer = known.get((method, path))
        if not answer and method == "GET" and path.startswith("/v1/conversations/"):
            return self._read(path.split("/")[3:], request)
        return answer() if answer else _refuse(404, "not_found", "Not found.")

    def _accept(self, body: Any) -> Response:
        changed = self.script.tools.get("changed", [])
        return JSONResponse({"changed": [tool for tool in changed if tool["mark"] not in body["marks"]]})

    def _decide(self, body: Any) -> Response:
        self.script.decided += body["decisions"]
        return JSONResponse(self.script.chat())

    def _pauses(self) -> list[dict[str, Any]]:
        chat = self.script.chat()
        listed = {"chat_id": CHAT_ID, "conversation_id": CONVERSATION_ID, "paused_at": AT}
        return [{**listed, **chat["pause"]}] if "pause" in chat else []

    def _listed(self, request: Request) -> Response:
        wanted = request.query_params.get("q", "").lower()
        if wanted and "cursor" not in request.query_params:
            return JSONResponse({"conversations": [], "cursor": "next"})
        matching = [listed for listed in self.script.conversations if wanted in listed["title"].lower()]
        limit = int(request.query_params.get("limit", "20"))
        more = {"cursor": "next"} if len(matching) > limit else {}
        return JSONResponse({"conversations": matching[:limit], **more})

    def _read(self, path: list[str], request: Request) -> Response:
        records = self.script.records.get(path[0])
        if records is None:
            return _refuse(404, "not_found", "There is no such conversation.")
        if len(path) == 1:
            begin = int(request.query_params.get("cursor", "0"))
            more = {"cursor": str(begin + 2)} if begin + 2 < len(records) else {}
            conversation = next(
                listed for listed in self.script.conversations if listed["conversation_id"] == path[0]
            )
            track = request.query_params.get("track", "full")
            return JSONResponse(
                {**conversation, "track": track, "records": records[begin : begin + 2], **more}
            )
        record = next((candidate for candidate in records if candidate["record_id"] == path[2]), None)
        if record is None:
            return _refuse(404, "not_found", "There is no such record.")
        offset = int(request.query_params.get("offset", "0"))
        name = "result" if "result" in record else "content"
        further = {"next_offset": offset + 1_000} if len(record[name]) > offset + 1_000 else {}
        return JSONResponse({**record, name: record[name][offset : offset + 1_000], **further})

    def _start(self, request: Request, body: Any) -> Response:
        unknown = set(body) - {"message", "continue", "conversation_id", "profile", "attachments", "output"}
        is_asked = 1 <= len(body.get("message", "")) <= 32000
        if unknown or is_asked is (body.get("continue") is True) or None in body.values():
            return _refuse(400, "invalid_request", f"Wrong fields: {sorted(unknown)}.")
        self.script.chats.setdefault(request.headers["idempotency-key"], body)
        url = f"/v1/chats/{CHAT_ID}"
        started = {"chat_id": CHAT_ID, "conversation_id": body.get("conversation_id", CONVERSATION_ID)}
        more = {"message_id": "q1", "status": "running", "url": url, "events_url": f"{url}/events"}
        return JSONResponse({**started, **more}, 202, {"Location": url})

    def _events(self, request: Request) -> Response:
        if "text/event-stream" not in request.headers.get("accept", ""):
            return _refuse(400, "invalid_request", "Accept must be text/event-stream.")
        last = int(request.headers.get("last-event-id", "0"))
        self.script.resumed_from.append(last)
        return StreamingResponse(self._stream(request, last), media_type="text/event-stream")

    async def _stream(self, request: Request, last: int) -> AsyncIterator[str]:
        cut = self.script.cuts.pop(0) if self.script.cuts else None
        yield "retry: 1000\n\n"
        for number, (kind, data) in enumerate(self.script.events, 1):
            if number <= last:
                continue
            frame = (
                f"id: {number}\nevent: {kind}\ndata: {json.dumps({'chat_id': CHAT_ID, 'at': AT, **data})}\n\n"
            )
            if cut is not None and number > cut:
                if self.script.torn:
                    yield frame[: len(frame) // 2]
                return
            yield f": keep-alive\n\n{frame}"
            if self.script.open_calls((kind, data)):
                return
            if number == self.script.hold_after:
                self.script.streaming.set()
                await _gone(request)
                return


async def _nothing() -> AsyncIterator[str]:
    yield ""
    raise ConnectionError("scripted: the answer is lost")


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _token(user: str) -> str:
    """An unsigned token in the form of an ID token."""
    claims = json.dumps({"sub": f"id-of-{user}", "cognito:username": user}).encode()
    return f"header.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.signature"


def _refuse(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status)


def _if_exactly(body: Any, fields: set[str]) -> Response:
    if set(body) != fields:
        return _refuse(400, "invalid_request", "Wrong fields.")
    return JSONResponse({})
