"""The contract's black-box checks of a stack, at its address and as one user.

Each check says what is expected and what was seen. A check that depends on a failed one is not reached.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
from dualtrack.api.key_format import is_key
from dualtrack.api.route import KEY_PATH

from dualtrack_stack.cli.client import ApiClient, ClientError, is_loopback
from dualtrack_stack.cli.transcript import compared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dualtrack_stack.cli.client import ChatEvent

GREETING: Final = "Say in one short sentence that you are there."
RECALL: Final = (
    "Fetch the full record q1-r with the tool for it, even if you know it, and quote its first sentence."
)
_NOBODY: Final = "ch_00000000000000000000000000"
_TIMEOUT: Final = httpx.Timeout(35, connect=10)


class Wrong(Exception):
    """The observation is not the expected one."""


class NotReached(Exception):
    """A check that this one depends on has failed."""


@dataclass(frozen=True, slots=True)
class StageCheck:
    """One statement of the contract."""

    name: str
    expected: str
    run: Callable[[Probe], str]
    """Returns what was seen; raises `Wrong`."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of a check; ``state`` is ``passed``, ``failed`` or ``not reached``."""

    name: str
    expected: str
    seen: str
    state: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ChatTimes:
    """Seconds of a chat since its request."""

    accepted: float
    first_token: float
    done: float


@dataclass
class Probe:
    """A user at an address, by a token or an API key, and the results so far."""

    url: str
    token: str
    chats: dict[str, dict[str, Any]] = field(default_factory=dict)
    """``first`` and ``second``: the answers of POST /v1/chats, with ``chat`` and ``events`` once they have ended."""
    timed: dict[str, ChatTimes] = field(default_factory=dict)
    receipt: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._key = str(uuid.uuid4())
        self._http = httpx.Client(
            base_url=self.url, timeout=_TIMEOUT, trust_env=not is_loopback(self.url), follow_redirects=False
        )

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def ask(self, method: str, path: str, *, token: str | None = None, **request: Any) -> httpx.Response:
        """A request as this user; anonymous with an empty ``token``."""
        used = self.token if token is None else token
        headers = {**({"Authorization": f"Bearer {used}"} if used else {}), **request.pop("headers", {})}
        door = KEY_PATH if is_key(used) else ""
        try:
            return self._http.request(method, door + path, headers=headers, **request)
        except httpx.TransportError as error:
            raise Wrong(f"no answer: {error}") from error

    def body(self, response: httpx.Response, *statuses: int) -> Any:
        """The JSON of an answer, which must have one of these statuses."""
        if response.status_code not in statuses:
            raise Wrong(f"{response.status_code} {response.text[:200]}")
        try:
            return response.json()
        except ValueError:
            raise Wrong(f"{response.status_code}, no JSON: {response.text[:100]}") from None

    def get(self, path: str) -> Any:
        """The body of a GET, which must return 200."""
        return self.body(self.ask("GET", path), 200)

    def refusal(self, response: httpx.Response, status: int, code: str) -> str:
        """Check that an answer is this error in the contract's form."""
        error = self.body(response, status).get("error") or {}
        if error.get("code") != code or not error.get("message"):
            raise Wrong(f"{status} {str(error)[:200]}")
        return f"{status} {code}"

    def chat(self, name: str) -> dict[str, Any]:
        """A chat that has ended."""
        if "chat" not in self.chats.get(name, {}):
            raise NotReached(f"the {name} chat did not end")
        return self.chats[name]

    def begin(self, name: str, message: str, conversation: str | None = None) -> httpx.Response:
        """Start a chat and follow it to its end."""
        body = {"message": message, **({"conversation_id": conversation} if conversation else {})}
        headers = {"Idempotency-Key": f"{self._key}-{name}"}
        began = time.monotonic()
        response = self.ask("POST", "/v1/chats", json=body, headers=headers)
        accepted = time.monotonic() - began
        started = dict(self.body(response, 202))
        self.chats[name] = started
        events, first = self._follow(started["chat_id"], began)
        self.timed[name] = ChatTimes(accepted, first, time.monotonic() - began)
        started |= {"events": events, "chat": self.get(f"/v1/chats/{started['chat_id']}")}
        return response

    def _follow(self, chat_id: str, began: float) -> tuple[list[ChatEvent], float]:
        events: list[ChatEvent] = []
        first = 0.0
        for event in self.events(chat_id):
            events.append(event)
            if event.kind == "delta" and not first:
                first = time.monotonic() - began
        return events, first or time.monotonic() - began

    def events(self, chat_id: str, after: int = 0) -> Iterator[ChatEvent]:
        """The events of a chat; the client raises an error for a gap."""
        with ApiClient(self.url, self.token) as client:
            try:
                yield from client.events(chat_id, after)
            except ClientError as error:
                raise Wrong(f"the event stream: {error}") from error


def run_checks(probe: Probe, tell: Callable[[CheckResult], None]) -> list[CheckResult]:
    """Run all checks in order; ``tell`` is called with each result."""
    results = []
    for check in CHECKS:
        began = time.monotonic()
        try:
            seen, state = check.run(probe), "passed"
        except Wrong as problem:
            seen, state = str(problem), "failed"
        except NotReached as problem:
            seen, state = str(problem), "not reached"
        except (KeyError, TypeError, IndexError) as problem:  # an answer without a field of the contract
            seen, state = f"the answer has another form: {problem!r}", "failed"
        result = CheckResult(check.name, check.expected, seen, state, time.monotonic() - began)
        tell(result)
        results.append(result)
    return results


def _health(probe: Probe) -> str:
    probe.body(probe.ask("GET", "/health", token=""), 200)
    return "200"


def _openapi(probe: Probe) -> str:
    document = probe.body(probe.ask("GET", "/openapi.json", token=""), 200)
    if not str(document["openapi"]).startswith("3.1"):
        raise Wrong(str(document["openapi"]))
    return f"{document['openapi']}, {len(document['paths'])} paths"


def _unauthorized(probe: Probe) -> str:
    probe.refusal(probe.ask("GET", "/v1/credits", token=""), 401, "unauthorized")
    return probe.refusal(probe.ask("GET", "/v1/credits", token="no.such.token"), 401, "unauthorized")  # noqa: S106


def _forbidden(probe: Probe) -> str:
    return probe.refusal(probe.ask("GET", "/v1/admin/users/nobody/credits"), 403, "forbidden")


def _bad_field(probe: Probe) -> str:
    answer = probe.ask("POST", "/v1/chats", json={"message": "Hello.", "colour": "blue"})
    return probe.refusal(answer, 400, "invalid_request")


def _unknown_chat(probe: Probe) -> str:
    return probe.refusal(probe.ask("GET", f"/v1/chats/{_NOBODY}"), 404, "not_found")


def _tools(probe: Probe) -> str:
    answer = probe.get("/v1/tools")
    names = {tool["name"] for tool in answer["tools"]}
    if "retrieve_full_context" not in names:
        raise Wrong(", ".join(sorted(names)))
    return f"{len(names)} tools, {len(answer['profiles'])} profiles"


def _first_chat(probe: Probe) -> str:
    response = probe.begin("first", GREETING)
    chat = probe.chat("first")["chat"]
    if chat["status"] != "done" or not chat["response"]:
        raise Wrong(f"{chat['status']}, {chat.get('error') or chat['stop']}")
    if not response.headers.get("Location", "").endswith(chat["chat_id"]):
        raise Wrong(f"Location: {response.headers.get('Location')}")
    return f"202, then done ({chat['stop']}), {len(chat['response'])} characters"


def _events(probe: Probe) -> str:
    events = probe.chat("first")["events"]
    kinds = [event.kind for event in events]
    if [event.id for event in events] != list(range(1, len(events) + 1)):
        raise Wrong(f"ids {[event.id for event in events]}")
    if "answer" not in kinds or kinds[-1] != "done" or "delta" not in kinds:
        raise Wrong(", ".join(kinds))
    return f"{len(events)} events without a gap, {kinds.count('delta')} deltas"


def _resume(probe: Probe) -> str:
    events = probe.chat("first")["events"]
    half = len(events) // 2
    again = list(probe.events(probe.chat("first")["chat_id"], half))
    if [(event.id, event.kind, event.data) for event in again] != [
        (event.id, event.kind, event.data) for event in events[half:]
    ]:
        raise Wrong(f"after {half}: {[event.id for event in again]}")
    return f"after {half}: {len(again)} events, the same"


def _idempotency(probe: Probe) -> str:
    started = probe.chat("first")
    headers = {"Idempotency-Key": f"{probe._key}-first"}
    again = probe.body(probe.ask("POST", "/v1/chats", json={"message": GREETING}, headers=headers), 200, 202)
    if again["chat_id"] != started["chat_id"]:
        raise Wrong(f"another chat: {again['chat_id']}")
    other = probe.ask("POST", "/v1/chats", json={"message": "Something else."}, headers=headers)
    return f"the same chat; {probe.refusal(other, 409, 'idempotency_conflict')}"


def _recall(probe: Probe) -> str:
    conversation = probe.chat("first")["conversation_id"]
    probe.begin("second", RECALL, conversation)
    chat = probe.chat("second")["chat"]
    calls = [call for call in chat["tool_calls"] if call["tool"] == "retrieve_full_context"]
    if chat["status"] != "done" or not calls or any(call["is_error"] for call in calls):
        raise Wrong(f"{chat['status']}, tools: {[call['tool'] for call in chat['tool_calls']]}")
    full = probe.get(f"/v1/conversations/{conversation}/records/q1-r")["content"]
    if full != probe.chat("first")["chat"]["response"]:
        raise Wrong("the record is not the answer")
    return f"{len(calls)} call, its record is the whole answer"


def _two_tracks(probe: Probe) -> str:
    second = probe.chat("second")["chat"]
    path = f"/v1/conversations/{second['conversation_id']}"
    tracks = {
        track: [record["record_id"] for record in probe.get(f"{path}?track={track}")["records"]]
        for track in ("full", "summarised")
    }
    if "q1-r" not in tracks["full"] or not any(
        record_id.startswith("q1-r") for record_id in tracks["summarised"]
    ):
        raise Wrong(str(tracks))
    memory = second["memory"]
    return compared(memory["conversation_dollars"], memory["conversation_full_history_dollars"])


def _credits(probe: Probe) -> str:
    first = probe.chat("first")["chat"]
    used = first["credits_used"]
    entries = probe.get("/v1/credits/ledger")["entries"]
    kinds = [entry["kind"] for entry in entries if entry.get("chat_id") == first["chat_id"]]
    if used < 5 or (not first["tool_calls"] and used != 5) or kinds.count("settle") != 1:
        raise Wrong(f"{used} credits, ledger: {kinds}")
    return f"{used} credits, settled once"


def _receipt(probe: Probe) -> str:
    receipt = probe.get(f"/v1/chats/{probe.chat('second')['chat_id']}/receipt")
    probe.receipt = receipt
    dollars = receipt["totals"]["dollars"]
    if not dollars > 0:
        raise Wrong(f"{dollars} dollars")
    return f"${dollars:.6f}, {receipt['totals']['credits']} credits"


def _delete(probe: Probe) -> str:
    path = f"/v1/conversations/{probe.chat('first')['conversation_id']}"
    answer = probe.ask("DELETE", path)
    if answer.status_code not in (200, 202, 204):
        raise Wrong(f"{answer.status_code} {answer.text[:200]}")
    return f"{answer.status_code}, then {probe.refusal(probe.ask('GET', path), 404, 'not_found')}"


CHECKS: Final = (
    StageCheck("health", "200 without a token", _health),
    StageCheck("openapi", "the document, version 3.1, without a token", _openapi),
    StageCheck("401", "unauthorized without a token and with a wrong one", _unauthorized),
    StageCheck("403", "no admin's call for a user", _forbidden),
    StageCheck("400", "an unknown field is refused", _bad_field),
    StageCheck("404", "an unknown chat is not found", _unknown_chat),
    StageCheck("tools", "retrieve_full_context among them", _tools),
    StageCheck("a chat", "202 with Location, then an answer", _first_chat),
    StageCheck("events", "ids 1, 2, 3 …, deltas, answer, done last", _events),
    StageCheck("resume", "Last-Event-ID gets what comes after it, the same", _resume),
    StageCheck("idempotency", "the same key: the same chat, or 409 with another body", _idempotency),
    StageCheck("retrieve_full_context", "the model gets the first answer whole", _recall),
    StageCheck("two tracks", "the first answer on both tracks", _two_tracks),
    StageCheck("credits", "5 for a chat without tools, settled once", _credits),
    StageCheck("receipt", "every line with its dollars", _receipt),
    StageCheck("delete", "the conversation is gone", _delete),
)
