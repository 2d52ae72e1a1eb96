"""A strict collector on loopback: takes OTLP/JSON traces and nothing that the specification does not allow.

Sources: OTLP specification, "JSON Protobuf Encoding" and "OTLP/HTTP"; opentelemetry/proto/trace/v1/trace.proto.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from infra.local.loopback import serve_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

_SPAN: Final = {
    "traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status",
}  # fmt: skip
_NEEDED: Final = _SPAN - {"parentSpanId"}
_VALUES: Final = {"stringValue": str, "intValue": str, "doubleValue": float, "boolValue": bool}


@dataclass
class Collector:
    """``status``: what it answers in place of taking spans."""

    status: int = 200
    documents: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    requests: int = 0
    problems: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Of all documents, in their order."""
        return [span for document in self.documents for span in all_spans(document)]

    async def traces(self, request: Request) -> Response:
        self.requests += 1
        self.headers.append(dict(request.headers))
        document = await request.json()
        if self.status in (307, 308):
            return RedirectResponse(f"{self.url}/elsewhere", self.status)
        if self.status != 200:
            return Response(status_code=self.status)
        if request.headers["content-type"] != "application/json":
            return Response(status_code=415)
        found = problems(document)
        self.problems += found
        if found:
            return JSONResponse({"code": 3, "message": "; ".join(found)}, status_code=400)
        self.documents.append(document)
        return JSONResponse({})


def all_spans(document: Any) -> list[dict[str, Any]]:
    """Of a request, in their order."""
    return [
        span
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def problems(document: Any) -> list[str]:
    """What is wrong with an ExportTraceServiceRequest."""
    found = _fields(document, {"resourceSpans"}, {"resourceSpans"}, "request")
    for resource in document.get("resourceSpans", ()):
        found += _fields(resource, {"resource", "scopeSpans"}, {"resource", "scopeSpans"}, "resourceSpans")
        found += _attributes(resource.get("resource", {}).get("attributes", ()), "resource")
        for scope in resource.get("scopeSpans", ()):
            found += _fields(scope, {"scope", "spans"}, {"spans"}, "scopeSpans")
            ids = [span.get("spanId") for span in scope.get("spans", ())]
            found += ["a span's id is there twice"] if len(set(ids)) < len(ids) else []
            for span in scope.get("spans", ()):
                found += _span(span)
                if span.get("parentSpanId") not in (None, *ids):
                    found.append(f"{span['name']}: no such parent")
    return found


def _span(span: dict[str, Any]) -> list[str]:
    name = str(span.get("name"))
    found = _fields(span, _SPAN, _NEEDED, name)
    sizes = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
    for one, size in sizes.items():
        given = span.get(one, "1" * size)
        if not re.fullmatch(rf"[0-9a-f]{{{size}}}", given) or set(given) == {"0"}:
            found.append(f"{name}: {one} {given!r}")
    times = [span.get(f"{end}TimeUnixNano") for end in ("start", "end")]
    if not all(isinstance(one, str) and re.fullmatch(r"[1-9]\d{18}", one) for one in times):
        found.append(f"{name}: times {times}")
    elif int(str(times[0])) > int(str(times[1])):
        found.append(f"{name}: ends before it starts")
    if span.get("kind") not in (1, 2, 3, 4, 5) or not span.get("name"):
        found.append(f"{name}: name or kind")
    status = span.get("status", {})
    if set(status) - {"code", "message"} or status.get("code", 0) not in (0, 1, 2):
        found.append(f"{name}: status {status}")
    return found + _attributes(span.get("attributes", ()), name)


def _attributes(given: Any, where: str) -> list[str]:
    found = []
    keys = [one.get("key") for one in given]
    if len(set(keys)) < len(keys) or not all(isinstance(key, str) and key for key in keys):
        found.append(f"{where}: keys {keys}")
    for one in given:
        ((kind, value),) = one["value"].items() if len(one.get("value", {})) == 1 else [("", None)]
        is_right = set(one) == {"key", "value"} and isinstance(value, _VALUES.get(kind, ()))
        if not is_right or (kind == "intValue" and not re.fullmatch(r"-?\d+", str(value))):
            found.append(f"{where}: {one}")
    return found


def _fields(given: Any, known: set[str], needed: set[str], where: str) -> list[str]:
    if not isinstance(given, dict):
        return [f"{where}: no object"]
    return [f"{where}: {name}" for name in sorted((set(given) - known) | (needed - set(given)))]


@contextmanager
def serve_collector() -> Iterator[Collector]:
    """The control object with its ``url`` while it is served; what goes elsewhere is a problem."""
    control = Collector()

    async def other(request: Request) -> Response:
        control.problems.append(request.url.path)
        return Response(status_code=404)

    routes = [
        Route("/base/v1/traces", control.traces, methods=["POST"]),
        Route("/{rest:path}", other, methods=["GET", "POST"]),
    ]
    with serve_in_thread(Starlette(routes=routes)) as url:
        control.url = f"{url}/base"
        yield control
