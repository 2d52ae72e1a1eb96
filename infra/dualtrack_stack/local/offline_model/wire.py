"""The shape of a Messages request (API version 2026-10-21), as far as dualtrack sends it.

Every other field is refused, as the real API refuses unknown ones. A string instead of a list of blocks becomes one
text block, as the API defines it. Source of the fields: the parameter types of the anthropic SDK 2.12.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from dualtrack import tool_rules
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    StringConstraints,
    model_validator,
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


class Base64Image(Part):
    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: StrictStr


class Image(Cacheable):
    type: Literal["image"]
    source: Base64Image


class Base64Pdf(Part):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: StrictStr


def _as_blocks(value: Any) -> Any:
    """A string is shorthand for a text block; an empty one for none."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value


class Document(Cacheable):
    type: Literal["document"]
    source: Base64Pdf


class Thinking(Part):
    type: Literal["thinking"]
    thinking: StrictStr
    signature: StrictStr


class RedactedThinking(Part):
    type: Literal["redacted_thinking"]
    data: NonEmpty


class ToolUse(Cacheable):
    type: Literal["tool_use"]
    id: BlockId
    name: ToolName
    input: dict[str, Any]


ResultBlock: TypeAlias = Annotated[Text | Image | Document, Field(discriminator="type")]


class ToolResult(Cacheable):
    type: Literal["tool_result"]
    tool_use_id: BlockId
    content: Annotated[tuple[ResultBlock, ...], BeforeValidator(_as_blocks)] = ()
    is_error: StrictBool = False

    @model_validator(mode="after")
    def _is_text_if_an_error(self) -> Self:
        if self.is_error and any(not isinstance(block, Text) for block in self.content):
            raise ValueError("all content must be type `text` if `is_error` is true")
        return self


UserBlock: TypeAlias = Annotated[Text | Image | Document | ToolResult, Field(discriminator="type")]
AssistantBlock: TypeAlias = Annotated[
    Text | Thinking | RedactedThinking | ToolUse, Field(discriminator="type")
]
Block: TypeAlias = Text | Image | Document | ToolResult | Thinking | RedactedThinking | ToolUse


class UserMessage(Part):
    role: Literal["user"]
    content: Annotated[tuple[UserBlock, ...], BeforeValidator(_as_blocks)]


class AssistantMessage(Part):
    role: Literal["assistant"]
    content: Annotated[tuple[AssistantBlock, ...], BeforeValidator(_as_blocks)]


Message: TypeAlias = Annotated[UserMessage | AssistantMessage, Field(discriminator="role")]


class Tool(Cacheable):
    """A tool that the client runs."""

    name: ToolName
    input_schema: dict[str, Any]
    description: StrictStr = ""


class ToolChoiceAuto(Part):
    type: Literal["auto"]
    disable_parallel_tool_use: StrictBool = False


class ToolChoiceTool(Part):
    type: Literal["tool"]
    name: StrictStr
    disable_parallel_tool_use: StrictBool = False


class ToolChoiceNone(Part):
    type: Literal["none"]


ToolChoice: TypeAlias = Annotated[
    ToolChoiceAuto | ToolChoiceTool | ToolChoiceNone, Field(discriminator="type")
]


class ThinkingAdaptive(Part):
    type: Literal["adaptive"]
    display: Literal["summarized"] | None = None


class ThinkingBetweenTools(Part):
    type: Literal["between_tools"]


class ThinkingDisabled(Part):
    type: Literal["disabled"]


ThinkingConfig: TypeAlias = Annotated[
    ThinkingAdaptive | ThinkingBetweenTools | ThinkingDisabled, Field(discriminator="type")
]


class JsonFormat(Part):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    type: Literal["json_schema"]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class OutputConfig(Part):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


class Diagnostics(Part):
    """The question about the prompt cache (`.remembered`)."""

    previous_message_id: NonEmpty | None = None


StopSequence: TypeAlias = Annotated[str, Field(pattern=r"\S")]
"""White space alone is refused."""


class Request(Part):
    """The body of POST /v1/messages."""

    model: NonEmpty
    max_tokens: Annotated[int, Field(strict=True, ge=1)]
    messages: tuple[Message, ...]
    system: Annotated[tuple[Text, ...], BeforeValidator(_as_blocks)] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    stop_sequences: tuple[StopSequence, ...] = ()
    cache_control: CacheControl | None = None
    """A breakpoint at the last block, wherever that is."""
    diagnostics: Diagnostics | None = None
    stream: StrictBool = False

    @property
    def is_structured(self) -> bool:
        """Whether it is a question with an answer in a form, and no turn, which is streamed."""
        return not self.stream and self.output_config is not None and self.output_config.format is not None
