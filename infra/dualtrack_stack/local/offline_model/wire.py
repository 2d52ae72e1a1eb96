"""The shape of a Messages request (API version 2026-10-21), as far as the offline model supports it.

Unknown fields are refused, as the real API refuses them. A string instead of a list of blocks becomes one text block,
as the API defines it. Source of the fields: the parameter types of the anthropic SDK 2.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from dualtrack import tool_rules
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    StringConstraints,
)

BLOCK_ID = r"^[a-zA-Z0-9_-]+$"

ToolName = Annotated[str, StringConstraints(strict=True, pattern=tool_rules.NAME)]
BlockId = Annotated[str, StringConstraints(strict=True, pattern=BLOCK_ID)]
NonEmpty = Annotated[str, StringConstraints(strict=True, min_length=1)]


class Part(BaseModel):
    """Base of everything on the wire: frozen, without undeclared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CacheControl(Part):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class Cacheable(Part):
    """A block that may carry a cache breakpoint."""

    cache_control: CacheControl | None = None


class Text(Cacheable):
    type: Literal["text"]
    text: StrictStr
    citations: tuple[dict[str, Any], ...] | None = None


class Base64Image(Part):
    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: StrictStr


class UrlSource(Part):
    type: Literal["url"]
    url: Annotated[str, StringConstraints(strict=True, pattern=r"^https?://")]


class Image(Cacheable):
    type: Literal["image"]
    source: Annotated[Base64Image | UrlSource, Field(discriminator="type")]
    transformations: dict[str, Any] | None = None


class Base64Pdf(Part):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: StrictStr


class PlainText(Part):
    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: StrictStr


class CitationsConfig(Part):
    enabled: StrictBool = False


def _as_blocks(value: Any) -> Any:
    """A string is shorthand for a text block; an empty one for none."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value


InnerBlock: TypeAlias = Annotated[Text | Image, Field(discriminator="type")]


class BlocksSource(Part):
    type: Literal["content"]
    content: Annotated[tuple[InnerBlock, ...], BeforeValidator(_as_blocks)]


class Document(Cacheable):
    type: Literal["document"]
    source: Annotated[Base64Pdf | PlainText | BlocksSource | UrlSource, Field(discriminator="type")]
    title: StrictStr | None = None
    context: StrictStr | None = None
    citations: CitationsConfig | None = None


class SearchResult(Cacheable):
    type: Literal["search_result"]
    source: StrictStr
    title: StrictStr
    content: tuple[Text, ...]
    citations: CitationsConfig | None = None


class ToolReference(Cacheable):
    type: Literal["tool_reference"]
    tool_name: StrictStr


class Thinking(Part):
    type: Literal["thinking"]
    thinking: StrictStr
    signature: StrictStr


class RedactedThinking(Part):
    type: Literal["redacted_thinking"]
    data: NonEmpty


class DirectCaller(Part):
    type: Literal["direct"]


class ToolUse(Cacheable):
    type: Literal["tool_use"]
    id: BlockId
    name: ToolName
    input: dict[str, Any]
    caller: DirectCaller | None = None
    toolset_name: StrictStr | None = None


ResultBlock: TypeAlias = Annotated[
    Text | Image | Document | SearchResult | ToolReference, Field(discriminator="type")
]


class ToolResult(Cacheable):
    type: Literal["tool_result"]
    tool_use_id: BlockId
    content: Annotated[tuple[ResultBlock, ...], BeforeValidator(_as_blocks)] = ()
    is_error: StrictBool = False
    toolset_name: StrictStr | None = None


class ServerToolUse(Cacheable):
    type: Literal["server_tool_use"]
    id: Annotated[str, StringConstraints(strict=True, pattern=r"^srvtoolu_[a-zA-Z0-9_]+$")]
    name: Literal["tool_search_tool_regex", "tool_search_tool_bm25"]
    input: dict[str, Any]
    caller: DirectCaller | None = None


class ToolSearchFound(Part):
    type: Literal["tool_search_tool_search_result"]
    tool_references: tuple[ToolReference, ...]


class ToolSearchResult(Cacheable):
    type: Literal["tool_search_tool_result"]
    tool_use_id: StrictStr
    content: ToolSearchFound


UserBlock: TypeAlias = Annotated[
    Text | Image | Document | SearchResult | ToolResult, Field(discriminator="type")
]
AssistantBlock: TypeAlias = Annotated[
    Text | Thinking | RedactedThinking | ToolUse | ServerToolUse | ToolSearchResult,
    Field(discriminator="type"),
]
Block: TypeAlias = (
    Text
    | Image
    | Document
    | SearchResult
    | ToolReference
    | ToolResult
    | Thinking
    | RedactedThinking
    | ToolUse
    | ServerToolUse
    | ToolSearchResult
)


class UserMessage(Part):
    role: Literal["user"]
    content: Annotated[tuple[UserBlock, ...], BeforeValidator(_as_blocks)]


class AssistantMessage(Part):
    role: Literal["assistant"]
    content: Annotated[tuple[AssistantBlock, ...], BeforeValidator(_as_blocks)]


class SystemMessage(Part):
    role: Literal["system"]
    content: Annotated[tuple[Text, ...], BeforeValidator(_as_blocks)]


Message: TypeAlias = Annotated[UserMessage | AssistantMessage | SystemMessage, Field(discriminator="role")]


class Tool(Cacheable):
    """A tool that the client runs."""

    type: Literal["custom"] = "custom"
    name: ToolName
    input_schema: dict[str, Any]
    description: StrictStr = ""
    strict: StrictBool = False
    defer_loading: StrictBool = False
    input_examples: tuple[dict[str, Any], ...] = ()
    allowed_callers: tuple[Literal["direct"], ...] = ()
    eager_input_streaming: StrictBool | None = None


class ToolSearchBm25(Cacheable):
    type: Literal["tool_search_tool_bm25_20251119", "tool_search_tool_bm25"]
    name: Literal["tool_search_tool_bm25"]
    defer_loading: StrictBool = False


class ToolSearchRegex(Cacheable):
    type: Literal["tool_search_tool_regex_20251119", "tool_search_tool_regex"]
    name: Literal["tool_search_tool_regex"]
    defer_loading: StrictBool = False


def _with_type(value: Any) -> Any:
    """A tool without a type is a custom one."""
    if isinstance(value, Mapping) and value.get("type") is None:
        return {**value, "type": "custom"}
    return value


AnyTool: TypeAlias = Annotated[
    Annotated[Tool | ToolSearchBm25 | ToolSearchRegex, Field(discriminator="type")],
    BeforeValidator(_with_type),
]


class ToolChoiceAuto(Part):
    type: Literal["auto"]
    disable_parallel_tool_use: StrictBool = False


class ToolChoiceAny(Part):
    type: Literal["any"]
    disable_parallel_tool_use: StrictBool = False


class ToolChoiceTool(Part):
    type: Literal["tool"]
    name: StrictStr
    disable_parallel_tool_use: StrictBool = False


class ToolChoiceNone(Part):
    type: Literal["none"]


ToolChoice: TypeAlias = Annotated[
    ToolChoiceAuto | ToolChoiceAny | ToolChoiceTool | ToolChoiceNone, Field(discriminator="type")
]


class ThinkingAdaptive(Part):
    type: Literal["adaptive"]
    display: Literal["summarized", "omitted"] | None = None


class ThinkingEnabled(Part):
    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(strict=True, ge=1024)]
    display: Literal["summarized", "omitted"] | None = None


class ThinkingBetweenTools(Part):
    type: Literal["between_tools"]


class ThinkingDisabled(Part):
    type: Literal["disabled"]


ThinkingConfig: TypeAlias = Annotated[
    ThinkingAdaptive | ThinkingEnabled | ThinkingBetweenTools | ThinkingDisabled, Field(discriminator="type")
]


class JsonFormat(Part):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class OutputConfig(Part):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class Metadata(Part):
    user_id: StrictStr | None = None


class Diagnostics(Part):
    previous_message_id: StrictStr | None = None


class Countable(Part):
    """The fields that `count_tokens` and `messages` accept."""

    model: NonEmpty
    messages: tuple[Message, ...]
    system: Annotated[tuple[Text, ...], BeforeValidator(_as_blocks)] = ()
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    cache_control: CacheControl | None = None
    speed: Literal["standard", "fast"] | None = None


class Request(Countable):
    """The body of POST /v1/messages."""

    max_tokens: Annotated[int, Field(strict=True, ge=0)]
    stream: StrictBool = False
    stop_sequences: tuple[StrictStr, ...] = ()
    metadata: Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    diagnostics: Diagnostics | None = None
    inference_geo: StrictStr | None = None
