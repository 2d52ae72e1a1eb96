"""The offline model's response to a request: content blocks and a stop reason. Pure except for new ids."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from . import answer, signing, structured, summary, tool_picking, transcript, wire
from .models import limits_of
from .smallest import smallest
from .tokens import estimate
from .tool_picking import Call

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def decide(request: wire.Request, *, only_samples: bool = False) -> Reply:
    """The offline model's own reply to a valid request. ``only_samples``: documentation is the sample documents."""
    if request.max_tokens == 0:
        # Pre-warming: the cache is filled and nothing is generated.
        return Reply((), "max_tokens")
    return fitted(request, _unlimited(request, only_samples=only_samples))


def _unlimited(request: wire.Request, *, only_samples: bool) -> Reply:
    if request.output_config and request.output_config.format and not request.stream:
        return _text(request, _structured(request, request.output_config.format))
    if summary.is_summary_request(request):
        return _text(request, summary.summarise(request))
    seen = transcript.read(request)
    calls = _calls(request, seen, only_samples=only_samples)
    thinking = _thinking(request, calls)
    if not calls and seen.schema is not None:
        return _text(request, json.dumps(smallest(seen.schema), ensure_ascii=False))
    if not calls:
        offered = [tool.name for tool in request.tools if isinstance(tool, wire.Tool)]
        text = answer.write(seen, offered, only_samples=only_samples)
        return Reply((*thinking, {"type": "text", "text": text}))
    interim = {"type": "text", "text": answer.interim(tuple(call.tool for call in calls))}
    return Reply((*thinking, interim, *_search(request, calls), *map(_tool_use, calls)), "tool_use")


def _text(request: wire.Request, text: str) -> Reply:
    return Reply((*_thinking(request, ()), {"type": "text", "text": text}))


def _structured(request: wire.Request, wanted: wire.JsonFormat) -> str:
    return json.dumps(structured.fill(wanted.schema_, _prompt(request)), ensure_ascii=False)


def _prompt(request: wire.Request) -> str:
    return transcript.without_ids("\n\n".join(transcript.texts(request.messages[-1].content)))


def _calls(request: wire.Request, seen: transcript.Transcript, *, only_samples: bool) -> tuple[Call, ...]:
    choice = request.tool_choice
    if isinstance(choice, wire.ToolChoiceNone):
        return ()
    offered = {tool.name: tool.input_schema for tool in request.tools if isinstance(tool, wire.Tool)}
    if isinstance(choice, wire.ToolChoiceTool) and len(offered) == 1:
        # structured output for a service without it: the input of the only tool is the answer
        return (Call(choice.name, structured.fill(offered[choice.name], _prompt(request))),)
    if isinstance(choice, wire.ToolChoiceTool):
        return (tool_picking.forced(choice.name, seen, offered[choice.name]),)
    calls = tool_picking.pick(seen, offered, only_samples=only_samples)
    if isinstance(choice, wire.ToolChoiceAny) and not calls:
        first = next(iter(offered))
        calls = (tool_picking.forced(first, seen, offered[first]),)
    return calls[:1] if choice and choice.disable_parallel_tool_use else calls


def _tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": fresh_id("toolu"), "name": call.tool, "input": dict(call.input)}


def _search(request: wire.Request, calls: Iterable[Call]) -> Blocks:
    """The tool search tool loads a deferred tool before its first call in a conversation."""
    searcher = next((tool.name for tool in request.tools if not isinstance(tool, wire.Tool)), None)
    deferred = {tool.name for tool in request.tools if tool.defer_loading}
    hidden = [call.tool for call in calls if call.tool in deferred - _already_loaded(request)]
    if searcher is None or not hidden:
        return ()
    use_id = fresh_id("srvtoolu")
    key, query = ("pattern", "|".join(hidden)) if searcher.endswith("regex") else ("query", " ".join(hidden))
    content = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": name} for name in hidden],
    }
    return (
        {"type": "server_tool_use", "id": use_id, "name": searcher, "input": {key: query}},
        {"type": "tool_search_tool_result", "tool_use_id": use_id, "content": content},
    )


def _already_loaded(request: wire.Request) -> set[str]:
    return {
        reference.tool_name
        for message in request.messages
        for block in message.content
        if isinstance(block, wire.ToolSearchResult)
        for reference in block.content.tool_references
    }


def _thinking(request: wire.Request, calls: tuple[Call, ...]) -> Blocks:
    """Not yet signed for models that sign it together with all that precedes it (`signed`)."""
    config, thinks = request.thinking, limits_of(request.model).thinks
    if not isinstance(config, wire.ThinkingAdaptive | wire.ThinkingEnabled) and not (thinks and not config):
        return ()
    thought = f"Rules applied: {', '.join(call.tool for call in calls) or 'answer from what is there'}."
    display = getattr(config, "display", None) or ("omitted" if thinks else "summarized")
    if display == "omitted":
        signature = "" if thinks else signing.sign_omitted(thought)
        return ({"type": "thinking", "thinking": "", "signature": signature},)
    return ({"type": "thinking", "thinking": thought, "signature": "" if thinks else signing.sign(thought)},)


def signed(request: wire.Request, reply: Reply) -> Reply:
    """The reply with its thinking signed as by the model: some sign all that precedes it too."""
    if not limits_of(request.model).thinks:
        blocks = tuple(_signed_alone(block) for block in reply.content)
        return replace(reply, content=blocks)
    return replace(reply, content=signing.bind(request, reply.content))


def _signed_alone(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "thinking" or block.get("signature"):
        return block
    return {**block, "signature": signing.sign(block["thinking"])}


def fitted(request: wire.Request, reply: Reply) -> Reply:
    """The reply cut at a stop sequence or at ``max_tokens``, with that stop reason."""
    room = request.max_tokens
    kept: list[dict[str, Any]] = []
    for block in reply.content:
        stopped = _stopped(block, request.stop_sequences)
        if stopped is not None:
            text, sequence = stopped
            kept.extend([{**block, "text": text}] if text else [])
            return replace(reply, content=tuple(kept), stop_reason="stop_sequence", stop_sequence=sequence)
        size = estimate(_visible(block))
        if size > room:
            if block["type"] == "text" and room:
                kept.append({**block, "text": block["text"][: room * 4]})
            return replace(reply, content=tuple(kept), stop_reason="max_tokens")
        kept.append(block)
        room -= size
    return reply


def _stopped(block: Mapping[str, Any], sequences: tuple[str, ...]) -> tuple[str, str] | None:
    if block["type"] != "text":
        return None
    positions = [
        (block["text"].find(sequence), sequence) for sequence in sequences if sequence in block["text"]
    ]
    if not positions:
        return None
    position, sequence = min(positions)
    return block["text"][:position], sequence
