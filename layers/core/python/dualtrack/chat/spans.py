"""A chat as OpenTelemetry spans, made of its receipt once it has ended. Pure.

    chat                    ─► invoke_agent <profile>    the root; the chat's tokens, its stop, its error
    model, summary, fold, title ─► chat <model>          a child; tokens, tries, seconds to the first piece
    tool                    ─► execute_tool <name>       a child of the root
    tool_model              ─► chat <model>              a child of its tool: the tool's own model calls
    embedding               ─► embeddings <model>        a child of its tool

Names are those of the semantic conventions for GenAI (OpenTelemetry, "Semantic conventions for generative client AI
spans", "… for GenAI agent and framework spans"; experimental); other attributes begin with ``dualtrack.``. The format
is OTLP/JSON (OTLP specification, "JSON Protobuf Encoding"): ids in hex, 64-bit numbers as decimal strings. Ids are
derived from the ids of chat and line, so that sending a chat twice gives the same spans. Spans have no text of
messages, results or arguments, and no user names. A line without a time is left out.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat.receipt import added
from dualtrack.clock import epoch_of
from dualtrack.models.provider import PROVIDERS, provider_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.answers import Receipt, ReceiptLine, Tokens

_INTERNAL: Final = 1
_CLIENT: Final = 3
_ERROR: Final = 2
"""Span.SpanKind and Status.StatusCode (opentelemetry/proto/trace/v1/trace.proto)."""

_ROOT: Final = "chat"
_OWN: Final = ("model", "summary", "fold", "title")
_INSIDE: Final = ("tool_model", "embedding")
_EMBEDDER: Final = "voyage_ai"
"""The conventions have no well-known value for this provider."""

_ENDED: Final = ("done", "failed", "cancelled")


def spans_of(receipt: Receipt, provider: str, error: str = "") -> dict[str, Any] | None:
    """The ExportTraceServiceRequest of an ended chat, as JSON; None if the chat has not ended.

    ``provider``: who serves the model (`dualtrack.models.provider`); ``error``: the code of a failed chat's error.
    """
    ended = receipt["ended_at"]
    if receipt["status"] not in _ENDED or not ended:
        return None
    shared = {
        "gen_ai.provider.name": provider_of(provider).span_name if provider in PROVIDERS else provider,
        "gen_ai.conversation.id": receipt["conversation_id"],
    }
    lines = [(at, line) for line in receipt["lines"] if (at := line["at"])]
    root = _root(receipt, ended, shared, error)
    calls = [_call(at, line, shared) for at, line in lines if line["kind"] in (*_OWN, *_INSIDE)]
    tools = [_tool(at, line, shared) for at, line in lines if line["kind"] == "tool"]
    parents = {line["id"]: line["call"] for _, line in lines if line["kind"] in _INSIDE}
    children = [
        {
            **_ids(receipt["chat_id"], line_id),
            "parentSpanId": _ids(receipt["chat_id"], parents.get(line_id, _ROOT))["spanId"],
            **span,
        }
        for line_id, span in (*calls, *tools)
    ]
    scope = {"scope": {"name": "dualtrack"}, "spans": [root, *children]}
    resource = {"attributes": _attributes({"service.name": "dualtrack"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _root(receipt: Receipt, ended: str, shared: Mapping[str, str], error: str) -> dict[str, Any]:
    usages = [line["usage"] for line in receipt["lines"] if line["kind"] == "model" and not line["estimated"]]
    usage = added(usages)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        **shared,
        "gen_ai.agent.name": receipt["profile"],
        "gen_ai.request.model": receipt["model"],
        **_usage(usage),
        "dualtrack.chat.id": receipt["chat_id"],
        "dualtrack.status": receipt["status"],
        "dualtrack.stop": receipt["stop"],
        "dualtrack.credits": receipt["totals"]["credits"],
    }
    failed = (error or "_OTHER") if receipt["status"] == "failed" else ""
    times = _times(receipt["created_at"], epoch_of(ended) - epoch_of(receipt["created_at"]))
    span = _span(f"invoke_agent {receipt['profile']}", _INTERNAL, times, attributes, failed)
    return {**_ids(receipt["chat_id"], _ROOT), **span}


def _call(at: str, line: ReceiptLine, shared: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """A model call's span. A call that was never recorded has no duration and no tokens, because they are unknown."""
    model, is_lost = line["model"], line["estimated"]
    operation = "embeddings" if line["kind"] == "embedding" else "chat"
    attributes = {
        "gen_ai.operation.name": operation,
        **shared,
        **({"gen_ai.provider.name": _EMBEDDER} if operation == "embeddings" else {}),
        "gen_ai.request.model": model,
        **({} if is_lost else _usage(line["usage"])),
        "gen_ai.response.time_to_first_chunk": line.get("first_seconds"),
        "dualtrack.line": line["id"],
        "dualtrack.calls": line["calls"],
        "dualtrack.tries": line["tries"],
        "dualtrack.cache_miss": missed["reason"] if (missed := line.get("cache_miss")) else None,
    }
    times = _times(at, line["seconds"])
    return line["id"], _span(
        f"{operation} {model or ''}".strip(), _CLIENT, times, attributes, "lost" if is_lost else ""
    )


def _tool(at: str, line: ReceiptLine, shared: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": shared["gen_ai.conversation.id"],
        "gen_ai.tool.name": line["tool"],
        "gen_ai.tool.call.id": line["id"],
        "gen_ai.tool.type": "function",
        "dualtrack.credits": line["credits"],
    }
    error = "tool_error" if line["is_error"] else ""
    times = _times(at, line["seconds"])
    return line["id"], _span(f"execute_tool {line['tool']}", _INTERNAL, times, attributes, error)


def _usage(usage: Tokens) -> dict[str, int]:
    """The tokens. Anthropic's input tokens exclude cached ones; those of the conventions include them."""
    return {
        "gen_ai.usage.input_tokens": usage["fresh"] + usage["cache_write"] + usage["cache_read"],
        "gen_ai.usage.cache_creation.input_tokens": usage["cache_write"],
        "gen_ai.usage.cache_read.input_tokens": usage["cache_read"],
        "gen_ai.usage.output_tokens": usage["output"],
    }


def _ids(chat_id: str, line_id: str) -> dict[str, str]:
    return {
        "traceId": hashlib.sha256(chat_id.encode()).hexdigest()[:32],
        "spanId": hashlib.sha256(f"{chat_id} {line_id}".encode()).hexdigest()[:16],
    }


def _times(at: str, seconds: float | None) -> tuple[str, str]:
    """Start and end in nanoseconds since the epoch, with a precision of milliseconds."""
    start = round(epoch_of(at) * 1_000)
    end = start + max(round((seconds or 0.0) * 1_000), 0)
    return f"{start}000000", f"{end}000000"


def _span(
    name: str, kind: int, times: tuple[str, str], attributes: Mapping[str, Any], error: str
) -> dict[str, Any]:
    start, end = times
    failed = {"error.type": error} if error else {}
    return {
        "name": name,
        "kind": kind,
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": _attributes({**attributes, **failed}),
        "status": {"code": _ERROR} if error else {},
    }


def _attributes(values: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: str | float) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}
