"""The offline model's response to a request: content blocks and a stop reason. Pure except for new ids."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from . import answer, calls, notes, summary, transcript, values, wire
from .models import limits_of
from .tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .calls import Call

Blocks = tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The assistant's message. Blocks are as on the wire; ``usage`` overrides single figures."""

    content: Blocks
    stop_reason: str = "end_turn"
    stop_sequence: str | None = None
    stop_details: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def output_tokens(self) -> int:
        """By estimate; at least one, as the API counts even an empty answer."""
        return max(1, sum(estimate(_visible(block)) for block in self.content))

    @property
    def thinking_tokens(self) -> int:
        """The share of thinking in `output_tokens`."""
        return sum(estimate(_visible(block)) for block in self.content if block["type"] == "thinking")


def _visible(block: Mapping[str, Any]) -> str:
    return str(block.get("text") or block.get("thinking") or "") or json.dumps(dict(block))


def fresh_id(prefix: str) -> str:
    """An id like the API's: ``toolu_…``, ``msg_…``, ``req_…``."""
    return f"{prefix}_01{secrets.token_hex(11)}"


def decide(request: wire.Request) -> Reply:
    """The offline model's own reply to a valid request, cut at its ``max_tokens``."""
    return fitted(request, _unlimited(request))


def _unlimited(request: wire.Request) -> Reply:
    if request.is_structured:
        assert request.output_config
        assert request.output_config.format
        return _text(request, _json(_chosen(request, request.output_config.format.schema_)))
    if summary.is_summary_request(request):
        return _text(request, summary.summarise(request))
    seen = transcript.read(request)
    offered = {tool.name: tool.input_schema for tool in request.tools}
    wanted = _calls(request, seen, offered)
    if not wanted and seen.schema is not None:
        return _text(request, _json(values.smallest(seen.schema)))
    if not wanted:
        said = answer.write(seen, offered, transcript.prompt_of(request))
        return _text(request, said + notes.behind(request, said))
    interim = {"type": "text", "text": answer.interim(tuple(call.tool for call in wanted))}
    return Reply((*_thinking(request, wanted), interim, *map(_tool_use, wanted)), "tool_use")


def _text(request: wire.Request, text: str) -> Reply:
    return Reply((*_thinking(request, ()), {"type": "text", "text": text}))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _chosen(request: wire.Request, schema: Mapping[str, Any]) -> Any:
    return values.chosen(schema, "\n\n".join(transcript.texts(request.messages[-1].content)))


def _calls(
    request: wire.Request, seen: transcript.Transcript, offered: Mapping[str, Any]
) -> tuple[Call, ...]:
    choice = request.tool_choice
    if isinstance(choice, wire.ToolChoiceTool):
        # structured output for a service without it: the input of the tool is the answer
        return (calls.Call(choice.name, _chosen(request, offered[choice.name])),)
    return () if isinstance(choice, wire.ToolChoiceNone) else calls.pick(seen, offered)


def _tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": fresh_id("toolu"), "name": call.tool, "input": dict(call.input)}


def _thinking(request: wire.Request, wanted: tuple[Call, ...]) -> Blocks:
    """What models think that think by default; not yet signed."""
    config = request.thinking
    if not limits_of(request.model).thinks or not isinstance(config, wire.ThinkingAdaptive | None):
        return ()
    thought = f"Rules applied: {', '.join(call.tool for call in wanted) or 'answer from what is there'}."
    is_shown = config is not None and config.display == "summarized"
    return ({"type": "thinking", "thinking": thought if is_shown else "", "signature": ""},)


def fitted(request: wire.Request, reply: Reply) -> Reply:
    """The reply cut at its first stop sequence and at ``max_tokens``, with that stop reason."""
    reply = stopped(request, reply)
    room = request.max_tokens
    kept: list[dict[str, Any]] = []
    for block in reply.content:
        size = estimate(_visible(block))
        if size > room:
            if block["type"] == "text" and room:
                kept.append({**block, "text": block["text"][: room * 4]})
            if block["type"] == "tool_use" and room:
                kept.append({**block, "input": {}, "input_json": json.dumps(block["input"])[: room * 4]})
            return replace(reply, content=tuple(kept), stop_reason="max_tokens")
        kept.append(block)
        room -= size
    return reply


def stopped(request: wire.Request, reply: Reply) -> Reply:
    """The reply up to the first of the request's stop sequences, which is left out."""
    kept: list[dict[str, Any]] = []
    for block in reply.content:
        text = block["text"] if block["type"] == "text" else ""
        found = [(at, stop) for stop in request.stop_sequences if (at := text.find(stop)) >= 0]
        if found:
            at, stop = min(found)
            kept += [{**block, "text": text[:at]}] if at else []
            return replace(reply, content=tuple(kept), stop_reason="stop_sequence", stop_sequence=stop)
        kept.append(dict(block))
    return reply
