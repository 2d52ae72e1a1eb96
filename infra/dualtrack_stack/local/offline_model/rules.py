"""Rules of the API beyond the form of fields: roles, pairing, empty text, caching, tools.

One small function per rule, all pure; each raises `RefusalError` with a message in the API's style.
Consecutive messages of one role are one turn to the API, so pairing is checked on merged turns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualtrack.tool_check import broken_rule
from dualtrack.tool_rules import MAX_TOOLS
from jsonschema import Draft202012Validator

from . import schemas, signing, wire
from .media_rules import check_media
from .models import limits_of
from .refusal import RefusalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_BREAKPOINTS = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role, as the API sees them. ``index`` is that of the first message."""

    role: str
    index: int
    blocks: tuple[wire.Block, ...]


def turns(messages: Iterable[wire.Message]) -> tuple[Turn, ...]:
    """The messages with consecutive ones of a role merged; system messages are not part of turns."""
    merged: list[Turn] = []
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        if merged and merged[-1].role == message.role:
            last = merged[-1]
            merged[-1] = Turn(last.role, last.index, (*last.blocks, *message.content))
        else:
            merged.append(Turn(message.role, index, tuple(message.content)))
    return tuple(merged)


def check(request: wire.Countable, is_paused: Callable[[wire.AssistantMessage], bool]) -> None:
    """Refuse what the real API refuses. ``is_paused`` knows the assistant messages that may be continued."""
    limits_of(request.model)
    _check_messages(request, is_paused)
    merged = turns(request.messages)
    _check_pairing(merged)
    _check_server_pairing(merged)
    _check_texts(request)
    check_media(request)
    _check_breakpoints(request)
    _check_tools(request)
    _check_tool_choice(request)
    _check_thinking(request, merged)
    if request.output_config and request.output_config.format:
        schemas.check_output(request.output_config.format.schema_)
    if isinstance(request, wire.Request):
        _check_limits(request)


def _check_messages(request: wire.Countable, is_paused: Callable[[wire.AssistantMessage], bool]) -> None:
    if not request.messages:
        raise RefusalError("messages: at least one message is required")
    if request.messages[0].role != "user":
        raise RefusalError('messages: first message must use the "user" role')
    if any(message.role == "system" for message in request.messages):
        _check_system_messages(request)
    for index, message in enumerate(request.messages):
        if not message.content:
            raise RefusalError(f"messages.{index}: all messages must have non-empty content")
    last = request.messages[-1]
    if isinstance(last, wire.AssistantMessage) and not is_paused(last):
        raise RefusalError(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )


def _check_system_messages(request: wire.Countable) -> None:
    if not limits_of(request.model).system_messages:
        raise RefusalError("role 'system' is not supported on this model")
    for index, message in enumerate(request.messages):
        before = request.messages[index - 1]
        if message.role == "system" and any(isinstance(block, wire.ToolUse) for block in before.content):
            raise RefusalError(
                f"messages.{index}: a system message may not stand between a tool use and its result"
            )


def _check_pairing(merged: tuple[Turn, ...]) -> None:
    seen: set[str] = set()
    pending: tuple[str, ...] = ()
    for turn in merged:
        if turn.role == "assistant":
            pending = tuple(block.id for block in turn.blocks if isinstance(block, wire.ToolUse))
            for position, block_id in enumerate(pending):
                if block_id in seen or block_id in pending[:position]:
                    raise RefusalError(f"messages.{turn.index}: `tool_use` ids must be unique")
            seen.update(pending)
        else:
            _check_results(turn, pending)
            pending = ()
    if pending:
        raise _unanswered(merged[-1].index, pending)


def _check_results(turn: Turn, pending: tuple[str, ...]) -> None:
    results = [block.tool_use_id for block in turn.blocks if isinstance(block, wire.ToolResult)]
    for block_id, count in Counter(results).items():
        if block_id not in pending:
            raise RefusalError(
                f"messages.{turn.index}: unexpected `tool_use_id` found in `tool_result` blocks: {block_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if count > 1:
            raise RefusalError(
                f"messages.{turn.index}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {block_id}"
            )
    leading = {
        block.tool_use_id for block in turn.blocks[: len(results)] if isinstance(block, wire.ToolResult)
    }
    missing = tuple(block_id for block_id in pending if block_id not in leading)
    if missing:
        raise _unanswered(turn.index - 1, missing)


def _unanswered(index: int, ids: tuple[str, ...]) -> RefusalError:
    return RefusalError(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block at the start "
        "of the next message."
    )


def _check_server_pairing(merged: tuple[Turn, ...]) -> None:
    for turn in merged:
        calls = [block.id for block in turn.blocks if isinstance(block, wire.ServerToolUse)]
        answered = [block.tool_use_id for block in turn.blocks if isinstance(block, wire.ToolSearchResult)]
        # A paused turn may end with a server tool without its result.
        if answered != calls[: len(answered)] or (len(calls) > len(answered) and turn is not merged[-1]):
            raise RefusalError(f"messages.{turn.index}: server tool uses and their results must pair up")


def _check_texts(request: wire.Countable) -> None:
    for system in request.system:
        _check_text(system, "system")
    for message in request.messages:
        for block in message.content:
            if isinstance(block, wire.Text):
                _check_text(block, "messages")
                if not block.text.strip():
                    raise RefusalError("messages: text content blocks must contain non-whitespace text")
                if block.citations and message.role == "user":
                    raise RefusalError(
                        "messages: citations are not permitted on text blocks of user messages"
                    )
            if isinstance(block, wire.ToolResult | wire.SearchResult):
                for inner in block.content:
                    if isinstance(inner, wire.Text):
                        _check_text(inner, f"messages: {block.type}")


def _check_text(block: wire.Text, where: str) -> None:
    if block.text:
        return
    if block.cache_control:
        raise RefusalError(f"{where}: cache_control cannot be set for empty text blocks")
    raise RefusalError(f"{where}: text content blocks must be non-empty")


def blocks_of(request: wire.Countable) -> Iterator[Any]:
    """Every block of the messages, those inside tool results and documents included."""
    for message in request.messages:
        for block in message.content:
            yield block
            if isinstance(block, wire.ToolResult | wire.SearchResult):
                yield from block.content
            if isinstance(block, wire.Document) and isinstance(block.source, wire.BlocksSource):
                yield from block.source.content


def _check_breakpoints(request: wire.Countable) -> None:
    marked = (*request.tools, *request.system, *blocks_of(request))
    breakpoints = [block.cache_control for block in marked if getattr(block, "cache_control", None)]
    if request.cache_control:
        breakpoints.append(request.cache_control)
    if len(breakpoints) > MAX_BREAKPOINTS:
        raise RefusalError(
            f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(breakpoints)}."
        )
    ttls = [control.ttl for control in breakpoints]
    if "5m" in ttls and "1h" in ttls[ttls.index("5m") :]:
        raise RefusalError(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        )


def _check_tools(request: wire.Countable) -> None:
    blocks = tuple(blocks_of(request))
    if not request.tools:
        if any(isinstance(block, wire.ToolUse | wire.ToolResult) for block in blocks):
            raise RefusalError("Requests which include `tool_use` or `tool_result` blocks must define tools")
        return
    names = _tool_names(request.tools)
    if all(tool.defer_loading for tool in request.tools):
        raise RefusalError("At least one tool must have defer_loading=false.")
    for index, tool in enumerate(request.tools):
        if tool.defer_loading and tool.cache_control:
            raise RefusalError(
                f"tools.{index}: cache_control cannot be set on a tool with defer_loading=true"
            )
        if isinstance(tool, wire.Tool):
            _check_tool(tool, f"tools.{index}.custom")
    for block in blocks:
        if isinstance(block, wire.ToolReference) and block.tool_name not in names:
            raise RefusalError(f"Tool reference '{block.tool_name}' not found in available tools")


def _tool_names(tools: tuple[wire.AnyTool, ...]) -> list[str]:
    names = [tool.name for tool in tools]
    if len(names) > MAX_TOOLS:
        raise RefusalError(
            f"tools: List should have at most {MAX_TOOLS} items after validation, not {len(names)}"
        )
    if len(set(names)) != len(names):
        raise RefusalError("tools: Tool names must be unique.")
    return names


def _check_tool(tool: wire.Tool, where: str) -> None:
    schema = tool.input_schema
    if problem := broken_rule(tool.name, schema):
        raise RefusalError(f"{where}.{problem}")
    if tool.strict:
        schemas.check_closed(schema, f"{where}.input_schema")
    validator = Draft202012Validator(schema)
    for index, example in enumerate(tool.input_examples):
        if not validator.is_valid(example):
            raise RefusalError(f"{where}.input_examples.{index}: does not match the input_schema")


def _check_tool_choice(request: wire.Countable) -> None:
    choice = request.tool_choice
    if choice is None:
        return
    if not request.tools:
        raise RefusalError("tool_choice may only be specified while providing tools")
    if isinstance(choice, wire.ToolChoiceTool) and choice.name not in {tool.name for tool in request.tools}:
        raise RefusalError(f"Tool '{choice.name}' not found in provided tools")


def _check_thinking(request: wire.Countable, merged: tuple[Turn, ...]) -> None:
    limits = limits_of(request.model)
    if not all(signing.valid(request) if limits.thinks else _signed_alone(request)):
        raise RefusalError("messages: Invalid `signature` in `thinking` block")
    if request.output_config and request.output_config.effort and not limits.effort:
        raise RefusalError("output_config.effort is not supported on this model")
    config = request.thinking
    if config and config.type not in limits.thinking:
        raise RefusalError(f"thinking.type: '{config.type}' is not supported on this model")
    if not isinstance(config, wire.ThinkingEnabled):
        return
    if isinstance(request, wire.Request) and config.budget_tokens >= request.max_tokens:
        raise RefusalError("`max_tokens` must be greater than `thinking.budget_tokens`")
    if isinstance(request.tool_choice, wire.ToolChoiceAny | wire.ToolChoiceTool):
        raise RefusalError("Thinking may not be enabled when tool_choice forces tool use.")
    _check_thinking_kept(merged)


def _signed_alone(request: wire.Countable) -> Iterator[bool]:
    """For each thinking block, whether this model made it, whatever precedes it."""
    for block in blocks_of(request):
        if isinstance(block, wire.Thinking):
            yield signing.is_signed(block.thinking, block.signature)


def _check_thinking_kept(merged: tuple[Turn, ...]) -> None:
    """While tools run, the assistant turn is sent back unchanged: with its thinking first."""
    if len(merged) < 2 or not isinstance(merged[-1].blocks[0], wire.ToolResult):
        return
    first = merged[-2].blocks[0]
    if not isinstance(first, wire.Thinking | wire.RedactedThinking):
        raise RefusalError(
            f"messages.{merged[-2].index}.content.0.type: Expected `thinking` or `redacted_thinking`, "
            f"but found `{first.type}`. When `thinking` is enabled, a final `assistant` message must start "
            "with a thinking block."
        )


def _check_limits(request: wire.Request) -> None:
    limits = limits_of(request.model)
    if request.max_tokens > limits.max_output:
        raise RefusalError(
            f"max_tokens: {request.max_tokens} > {limits.max_output}, which is the maximum allowed number of "
            f"output tokens for {request.model}"
        )
    if any(not sequence.strip() for sequence in request.stop_sequences):
        raise RefusalError("stop_sequences: each stop sequence must contain non-whitespace")
