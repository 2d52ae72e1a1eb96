"""A strict fake collector on loopback: accepts OTLP/JSON traces and only what the specification allows.

Sources: OTLP specification, "JSON Protobuf Encoding" and "OTLP/HTTP"; opentelemetry/proto/trace/v1/trace.proto.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.local.loopback import serve_in_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

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
    """``status``: its answer; spans are accepted only with 200."""

    status: int = 200
    documents: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    requests: int = 0
    problems: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def spans(self) -> list[dict[str, Any]]:
        """The spans of all documents, in order."""
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
        faults = problems(document)
        self.problems += faults
        if faults:
            return JSONResponse({"code": 3, "message": "; ".join(faults)}, status_code=400)
        self.documents.append(document)
        return JSONResponse({})


def all_spans(document: Any) -> list[dict[str, Any]]:
    """The spans of a request, in order."""
    return [
        span
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def problems(document: Any) -> list[str]:
    """What is wrong with an ExportTraceServiceRequest."""
    faults = _fields(document, {"resourceSpans"}, {"resourceSpans"}, "request")
    for resource in document.get("resourceSpans", ()):
        faults += _fields(resource, {"resource", "scopeSpans"}, {"resource", "scopeSpans"}, "resourceSpans")
        faults += _attributes(resource.get("resource", {}).get("attributes", ()), "resource")
        for scope in resource.get("scopeSpans", ()):
            faults += _fields(scope, {"scope", "spans"}, {"spans"}, "scopeSpans")
            ids = [span.get("spanId") for span in scope.get("spans", ())]
            faults += ["a span's id occurs twice"] if len(set(ids)) < len(ids) else []
            for span in scope.get("spans", ()):
                faults += _span(span)
                if span.get("parentSpanId") not in (None, *ids):
                    faults.append(f"{span['name']}: no such parent")
    return faults


def _span(span: dict[str, Any]) -> list[str]:
    name = str(span.get("name"))
    faults = _fields(span, _SPAN, _NEEDED, name)
    sizes = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
    for key, size in sizes.items():
        value = span.get(key, "1" * size)
        if not re.fullmatch(rf"[0-9a-f]{{{size}}}", value) or set(value) == {"0"}:
            faults.append(f"{name}: {key} {value!r}")
    times = [span.get(f"{end}TimeUnixNano") for end in ("start", "end")]
    if not all(isinstance(instant, str) and re.fullmatch(r"[1-9]\d{18}", instant) for instant in times):
        faults.append(f"{name}: times {times}")
    elif int(str(times[0])) > int(str(times[1])):
        faults.append(f"{name}: ends before it starts")
    if span.get("kind") not in (1, 2, 3, 4, 5) or not span.get("name"):
        faults.append(f"{name}: name or kind")
    status = span.get("status", {})
    if set(status) - {"code", "message"} or status.get("code", 0) not in (0, 1, 2):
        faults.append(f"{name}: status {status}")
    return faults + _attributes(span.get("attributes", ()), name)


def _attributes(attributes: Any, where: str) -> list[str]:
    faults = []
    keys = [attribute.get("key") for attribute in attributes]
    if len(set(keys)) < len(keys) or not all(isinstance(key, str) and key for key in keys):
        faults.append(f"{where}: keys {keys}")
    for attribute in attributes:
        ((kind, value),) = (
            attribute["value"].items() if len(attribute.get("value", {})) == 1 else [("", None)]
        )
        is_right = set(attribute) == {"key", "value"} and isinstance(value, _VALUES.get(kind, ()))
        if not is_right or (kind == "intValue" and not re.fullmatch(r"-?\d+", str(value))):
            faults.append(f"{where}: {attribute}")
    return faults


def _fields(value: Any, known: set[str], needed: set[str], where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: no object"]
    return [f"{where}: {name}" for name in sorted((set(value) - known) | (needed - set(value)))]


@contextmanager
def serve_collector() -> Iterator[Collector]:
    """The control object with its ``url`` while it is served; requests to other paths are problems."""
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
