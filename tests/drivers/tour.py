"""The tour: every door of a stage with every field of its body and every parameter, on the deployed stack.

A *stop* is a function that asks one door through the front and the gateway and checks what comes of the fields that it
declares. Which doors and fields there are is computed (`fields_of`), so one without a stop is a red test that names it
(tests/unit/test_tour.py); tests/e2e/test_tour.py makes the stops, each by token and by an API key with the door's
scopes. ``uv run --group test python -m tests.drivers.tour`` prints doors, fields and stops.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx
from dualtrack.api.openapi import openapi_document
from dualtrack.api.streamed import streamed_apis
from dualtrack.api.table import ROUTES
from dualtrack.event_data import EVENTS
from dualtrack_stack.doors import BY_NAME, DOORS
from dualtrack_stack.machines import TIMERS
from httpx_sse import EventSource

from tests.clients.documented import assert_event_documented
from tests.clients.stack_client import PATIENCE, TERMINAL, Person, Received, wait_for
from tests.drivers.plugin_parts import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dualtrack_stack.doors import Door

    from tests.clients.script import Script
    from tests.clients.stack_client import Root
    from tests.servers.tool_server import ToolServer

By = Literal["token", "key", "stage"]

EVENTS_DOOR: Final = "GET /v1/chats/{chat_id}/events"


# ── what there is ─────────────────────────────────────────────────────────────────────────────────


def fields_of(door: Door) -> frozenset[str]:
    """The fields of a door's body (``tools[].name``), its parameters, and the kinds of events that it streams
    (``event paused``)."""
    if door.kind == "route":
        operation: Mapping[str, Any] = openapi_document(ROUTES)["paths"][door.path][door.method.lower()]
        parameters = [_resolved(reference) for reference in operation["parameters"]]
        named = {one["name"] for one in parameters if one["in"] != "path"}
        body = (
            operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        )
        streamed = EVENTS if door.name == EVENTS_DOOR else ()
        return frozenset({*named, *_schema_fields(body, ""), *(f"event {kind}" for kind in streamed)})
    if door.kind == "streamed":
        named = {
            name
            for api in streamed_apis()
            for route in api.routes
            if door.name == f"{route.method} {api.path}{route.path}"
            for name in route.parameters
        }
        return frozenset(named.union(*(part.fields_of(door) for part in parts("asked_fields"))))
    return frozenset()


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Any = openapi_document(ROUTES)
    for part in schema["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return dict(found)


def _schema_fields(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    schema = _resolved(schema)
    for option in schema.get("anyOf", ()):
        yield from _schema_fields(option, prefix)
    if "items" in schema:
        yield from _schema_fields(schema["items"], f"{prefix}[]")
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield path
        yield from _schema_fields(part, path)


def sent_fields(value: object, prefix: str = "") -> Iterator[str]:
    """The fields of a body in the same form."""
    if isinstance(value, list):
        for entry in value:
            yield from sent_fields(entry, f"{prefix}[]")
    elif isinstance(value, dict):
        for name, part in value.items():
            path = f"{prefix}.{name}" if prefix else name
            yield path
            yield from sent_fields(part, path)


# ── stops ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop. ``fields``: those whose effect it checks; the frame checks that it has sent them."""

    door: Door
    fields: frozenset[str]
    visit: Callable[[Visit], None]

    @property
    def ways(self) -> tuple[By, ...]:
        """Who makes it: everybody who may."""
        if not self.door.is_http:
            return ("stage",)
        return ("token", "key") if self.door.scopes else ("token",)

    @property
    def name(self) -> str:
        """For the test's id."""
        return f"{self.door.name} ({self.visit.__name__})"


STOPS: Final[list[Stop]] = []


def stop(door: str, *fields: str) -> Callable[[Callable[[Visit], None]], Callable[[Visit], None]]:
    """Declare a stop: ``@stop("POST /v1/chats", "on_pause")`` over a function that asks the door with that field and
    checks its effect."""

    def declare(visit: Callable[[Visit], None]) -> Callable[[Visit], None]:
        STOPS.append(Stop(BY_NAME[door], frozenset(fields), visit))
        return visit

    return declare


def missing() -> dict[str, list[str]]:
    """Doors without a stop (an empty list) and fields without one, by door."""
    found: dict[str, list[str]] = {}
    for door in DOORS:
        stops = [one for one in STOPS if one.door == door]
        lacking = sorted(fields_of(door).difference(*(one.fields for one in stops)))
        if lacking or not stops:
            found[door.name] = lacking
    return found


def stray() -> dict[str, list[str]]:
    """Fields that stops declare and no door has."""
    declared_ones = {one.door.name: sorted(one.fields - fields_of(one.door)) for one in STOPS}
    return {door: fields for door, fields in declared_ones.items() if fields}


# ── a visit ───────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Visit:
    """What a stop has. ``owner``: its user, by token, for what has to be there before; of an administrator's door an
    administrator. ``client``: asks the door itself, by token or by a key of that user."""

    root: Root
    script: Script
    tools: ToolServer
    door: Door
    by: By
    _people: list[Person] = field(default_factory=list)
    _sent: set[str] = field(default_factory=set)
    asked: int = 0

    def __post_init__(self) -> None:
        self.owner = self.person(admin=self.door.passes == "admin")
        token = self.owner.identity.token
        self.credential = self.key(*self.door.scopes) if self.by == "key" else token
        headers = {"Authorization": f"Bearer {self.credential}"} if self.door.passes != "anyone" else {}
        self.client = httpx.Client(
            base_url=self.root.stack.url, headers=headers, timeout=PATIENCE, trust_env=False
        )

    def close(self) -> None:
        """End what still runs."""
        self.client.close()
        for person in self._people:
            person.close()

    def person(self, *, admin: bool = False) -> Person:
        """Another user."""
        number = len(self._people)
        identity = self.root.stack.token(f"tour-{self.script.marker}-{number}", admin=admin)
        self._people.append(Person(self.root.stack.url, identity))
        return self._people[-1]

    def key(self, *scopes: str, **more: Any) -> str:
        """An API key of the owner."""
        made = self.owner.http.post("/v1/keys", json={"name": "tour", "scopes": [*scopes], **more})
        assert made.status_code == 201, made.text
        return str(made.json()["key"])

    def ask(
        self,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        status: int = 0,
        **path: str,
    ) -> httpx.Response:
        """Ask the stop's own door. ``status``: what it must answer with; by default anything of success."""
        answer = self.client.request(
            self.door.method,
            self.door.path.format(**path),
            json=body,
            params=dict(query or {}),
            headers=dict(headers or {}),
        )
        fits = answer.status_code == status if status else answer.is_success
        assert fits, f"{self.door.name} by {self.by}: {answer.status_code} {answer.text[:2_000]}"
        self.asked += 1
        self._sent |= {*sent_fields(body), *(query or {}), *(headers or {})}
        return answer

    def invoke(self, event: Mapping[str, Any] | None = None) -> Any:
        """Call the function of the stop's door under its own role: with a timer's event, or this one."""
        timers = {f"timer {timer.name}": timer.event for timer in TIMERS}
        self.asked += 1
        name = "".join(part.capitalize() for part in self.door.function.split("_"))
        return self.root.invoke(name, dict(timers[self.door.name] if event is None else event))

    def went_through(self, execution: str) -> None:
        """The execution has passed the state of the stop's step."""
        client, state = self.root.client("stepfunctions"), self.door.name.split()[2].rstrip(":")
        wait_for(lambda: client.describe_execution(executionArn=execution)["status"] != "RUNNING")
        events = client.get_execution_history(executionArn=execution, maxResults=1000)["events"]
        entered = {
            event["stateEnteredEventDetails"]["name"]
            for event in events
            if "stateEnteredEventDetails" in event
        }
        kinds = [event["type"] for event in events]
        # the emulator lists states inside a Map as tasks alone
        inside = kinds.count("TaskScheduled") - kinds.count("TaskStateEntered")
        assert state in entered or (inside and "RunTools" in entered), f"{self.door.name}: {sorted(entered)}"
        self.asked += 1

    def saw(self, *kinds: str) -> None:
        """Events that came."""
        self._sent |= {f"event {kind}" for kind in kinds}

    def lacks(self, stop_: Stop) -> list[str]:
        """The fields that the stop declares and has not sent or seen."""
        return sorted(stop_.fields - self._sent)

    # ── what many stops need ──────────────────────────────────────────────────────────────────────

    def chat(self, says: str = "It is done.", *, by_caller: bool = False, **body: Any) -> dict[str, Any]:
        """A chat that ended: the owner's, or the caller's own, which a key without `read` may see."""
        self.script.says(says)
        started = self.start(by_caller=by_caller, **body)
        return self.finish(started["chat_id"])

    def finish(self, chat_id: str) -> dict[str, Any]:
        """The owner's chat once its events have ended."""
        self.until(chat_id, *TERMINAL)
        return self.owner.chat(chat_id)

    def until(self, chat_id: str, *kinds: str) -> Received:
        """The first event of these kinds; a stream that the server closes sooner is opened again."""
        last = 0
        while True:
            for event in self.owner.stream(chat_id, last):
                last = event.id
                if event.kind in kinds:
                    return event

    def start(self, *, by_caller: bool = False, **body: Any) -> dict[str, Any]:
        """A chat of the script that runs."""
        client = self.client if by_caller else self.owner.http
        answer = client.post("/v1/chats", json={"message": self.script.question(), **body})
        assert answer.status_code == 202, answer.text
        started: dict[str, Any] = answer.json()
        self.owner.chats.append(started["chat_id"])
        return started

    def paused(
        self, *calls: tuple[str, dict[str, Any]], by_caller: bool = False, **body: Any
    ) -> dict[str, Any]:
        """A chat that waits for decisions on these calls."""
        self.script.asks(*calls)
        started = self.start(by_caller=by_caller, **body)
        self.until(started["chat_id"], "paused")
        return self.owner.chat(started["chat_id"])

    def follow(self, chat_id: str, after: int = 0) -> list[Received]:
        """The events of a chat, at the events' own door."""
        headers = {"Last-Event-ID": str(after)} if after else {}
        source = EventSource(self.ask(headers=headers, chat_id=chat_id))
        events = [
            Received(int(event.id), event.event, json.loads(event.data))
            for event in source.iter_sse()
            if event.data
        ]
        for event in events:
            assert_event_documented(event.id, event.kind, event.data)
        self.saw(*(event.kind for event in events))
        return events


def main() -> None:
    """Print doors, fields and stops."""
    from tests.drivers import tour_stops  # noqa: F401 - it declares them

    for door in DOORS:
        stops = [one for one in STOPS if one.door == door]
        ways = ", ".join(dict.fromkeys(way for one in stops for way in one.ways))
        print(f"{door.name}: {len(stops)} stops by {ways}" if stops else f"{door.name}: NO STOP")
        for name in sorted(fields_of(door)):
            by = [one.visit.__name__ for one in stops if name in one.fields]
            print(f"    {name:<44} {', '.join(by) or 'NO STOP'}")


if __name__ == "__main__":
    main()
