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
    """The messages with consecutive ones of a role merged."""
    merged: list[Turn] = []
    for index, message in enumerate(messages):
        if merged and merged[-1].role == message.role:
            last = merged[-1]
            merged[-1] = Turn(last.role, last.index, (*last.blocks, *message.content))
        else:
            merged.append(Turn(message.role, index, tuple(message.content)))
    return tuple(merged)


def check(request: wire.Request, is_paused: Callable[[wire.AssistantMessage], bool]) -> None:
    """Refuse what the real API refuses. ``is_paused`` knows the assistant messages that may be continued."""
    limits_of(request.model)
    _check_messages(request, is_paused)
    _check_pairing(turns(request.messages))
    _check_texts(request)
    check_media(request)
    _check_breakpoints(request)
    _check_tools(request)
    _check_tool_choice(request)
    _check_thinking(request)
    if request.output_config and request.output_config.format:
        schemas.check_output(request.output_config.format.schema_)
    _check_limits(request)


def _check_messages(request: wire.Request, is_paused: Callable[[wire.AssistantMessage], bool]) -> None:
    if not request.messages:
        raise RefusalError("messages: at least one message is required")
    if request.messages[0].role != "user":
        raise RefusalError('messages: first message must use the "user" role')
    for index, message in enumerate(request.messages):
        if not message.content:
            raise RefusalError(f"messages.{index}: all messages must have non-empty content")
    last = request.messages[-1]
    if isinstance(last, wire.AssistantMessage) and not is_paused(last):
        raise RefusalError(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
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


def _check_texts(request: wire.Request) -> None:
    for system in request.system:
        _check_text(system, "system")
    for message in request.messages:
        for block in message.content:
            if isinstance(block, wire.Text):
                _check_text(block, "messages")
                if not block.text.strip():
                    raise RefusalError("messages: text content blocks must contain non-whitespace text")
            if isinstance(block, wire.ToolResult):
                for inner in block.content:
                    if isinstance(inner, wire.Text):
                        _check_text(inner, f"messages: {block.type}")


def _check_text(block: wire.Text, where: str) -> None:
    if block.text:
        return
    if block.cache_control:
        raise RefusalError(f"{where}: cache_control cannot be set for empty text blocks")
    raise RefusalError(f"{where}: text content blocks must be non-empty")


def blocks_of(request: wire.Request) -> Iterator[Any]:
    """Every block of the messages, those inside tool results included."""
    for message in request.messages:
        for block in message.content:
            yield block
            if isinstance(block, wire.ToolResult):
                yield from block.content


def _check_breakpoints(request: wire.Request) -> None:
    marked = (*request.tools, *request.system, *blocks_of(request))
    breakpoints = [block.cache_control for block in marked if getattr(block, "cache_control", None)]
    if len(breakpoints) > MAX_BREAKPOINTS:
        raise RefusalError(
            f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(breakpoints)}."
        )


def _check_tools(request: wire.Request) -> None:
    if not request.tools:
        if any(isinstance(block, wire.ToolUse | wire.ToolResult) for block in blocks_of(request)):
            raise RefusalError("Requests which include `tool_use` or `tool_result` blocks must define tools")
        return
    names = [tool.name for tool in request.tools]
    if len(names) > MAX_TOOLS:
        raise RefusalError(
            f"tools: List should have at most {MAX_TOOLS} items after validation, not {len(names)}"
        )
    if len(set(names)) != len(names):
        raise RefusalError("tools: Tool names must be unique.")
    for index, tool in enumerate(request.tools):
        if problem := broken_rule(tool.name, tool.input_schema):
            raise RefusalError(f"tools.{index}.custom.{problem}")


def _check_tool_choice(request: wire.Request) -> None:
    choice = request.tool_choice
    if choice is None:
        return
    if not request.tools:
        raise RefusalError("tool_choice may only be specified while providing tools")
    if isinstance(choice, wire.ToolChoiceTool) and choice.name not in {tool.name for tool in request.tools}:
        raise RefusalError(f"Tool '{choice.name}' not found in provided tools")


def _check_thinking(request: wire.Request) -> None:
    limits = limits_of(request.model)
    if not all(signing.valid(request)):
        raise RefusalError("messages: Invalid `signature` in `thinking` block")
    if request.output_config and request.output_config.effort and not limits.effort:
        raise RefusalError("output_config.effort is not supported on this model")
    config = request.thinking
    if config and config.type not in limits.thinking:
        raise RefusalError(f"thinking.type: '{config.type}' is not supported on this model")


def _check_limits(request: wire.Request) -> None:
    limits = limits_of(request.model)
    if request.max_tokens > limits.max_output:
        raise RefusalError(
            f"max_tokens: {request.max_tokens} > {limits.max_output}, which is the maximum allowed number of "
            f"output tokens for {request.model}"
        )
